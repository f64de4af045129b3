import {
  bearerToken,
  type DirectoryKey,
  type IsOperatorToken,
  keyRefusals,
} from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";
import type { Asked } from "./endpoint.ts";
import type { SdkParts } from "./sdk-parts.ts";

export const unknownKey = refuse("AUTH_001", "A valid API key is needed");

/** Returns the error for a token that is no API key that works. */
export type RejectToken = (token: string) => Refusal;

export function createRejectToken(isOperatorToken: IsOperatorToken): RejectToken {
  return (token) => (isOperatorToken(token) ? keyRefusals.operator : unknownKey);
}

/** Who is asking, by the key in `Authorization: Bearer`. */
export function byBearer({
  directory,
  rejectToken,
}: Pick<SdkParts, "directory" | "rejectToken">): (asked: Asked) => DirectoryKey | Refusal {
  return ({ request, nowMs }) => {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return unknownKey;
    return directory.verify(token, nowMs) ?? rejectToken(token);
  };
}

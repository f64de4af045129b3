import { bearerToken, type DirectoryKey } from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";
import type { Asked } from "./endpoint.ts";
import type { SdkParts } from "./sdk-parts.ts";

export const unknownKey = refuse("AUTH_001", "A valid API key is needed");

/** Who is asking, by the key in `Authorization: Bearer`. */
export function byBearer({
  directory,
}: Pick<SdkParts, "directory">): (asked: Asked) => DirectoryKey | Refusal {
  return ({ request, nowMs }) => {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return unknownKey;
    return directory.verify(token, nowMs) ?? unknownKey;
  };
}

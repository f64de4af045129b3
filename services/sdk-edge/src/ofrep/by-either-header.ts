import { bearerToken, type DirectoryKey } from "@halyard/api-keys";
import type { Refusal } from "@halyard/service";
import { unknownKey } from "../sdk/by-bearer.ts";
import type { Asked } from "../sdk/endpoint.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";

/**
 * Finds the API key in `Authorization: Bearer`, or else in `X-API-Key`. Another scheme in `Authorization` belongs to a
 * proxy between the client and Halyard.
 */
export function byEitherHeader({
  directory,
  rejectToken,
}: Pick<SdkParts, "directory" | "rejectToken">): (asked: Asked) => DirectoryKey | Refusal {
  return ({ request: { headers }, nowMs }) => {
    const text = bearerToken(headers.authorization) ?? headers["x-api-key"];
    if (typeof text !== "string") return unknownKey;
    return directory.verify(text, nowMs) ?? rejectToken(text);
  };
}

import { bearerToken, type DirectoryKey } from "@halyard/api-keys";
import type { Refusal } from "@halyard/service";
import { unknownKey } from "../sdk/by-bearer.ts";
import type { Asked } from "../sdk/endpoint.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";

/** Who is asking, by the key in `Authorization: Bearer` or, without that header, in `X-API-Key`. */
export function byEitherHeader({
  directory,
  rejectToken,
}: Pick<SdkParts, "directory" | "rejectToken">): (asked: Asked) => DirectoryKey | Refusal {
  return ({ request: { headers }, nowMs }) => {
    const text =
      headers.authorization === undefined
        ? headers["x-api-key"]
        : bearerToken(headers.authorization);
    if (typeof text !== "string") return unknownKey;
    return directory.verify(text, nowMs) ?? rejectToken(text);
  };
}

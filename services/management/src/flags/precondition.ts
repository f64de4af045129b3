import { type Refusal, refuse } from "@halyard/service";
import { etagOf, versionTagOf } from "./flag-resource.ts";

/**
 * `If-Match` (RFC 9110, section 13.1.1): one of the entity tags must name the current version, or the
 * list is `*`. The comparison is strong, so a weak tag never matches. `resource` is the path of the
 * version, because a flag has another version than its state.
 */
export function checkIfMatch(
  ifMatch: readonly string[] | undefined,
  current: { version: number },
  resource: string,
): Refusal | undefined {
  if (ifMatch === undefined) return undefined;
  const present = etagOf(current);
  if (ifMatch.some((tag) => tag === "*" || versionTagOf(tag) === present)) return undefined;
  return refuse(
    "CONFLICT_003",
    `If-Match does not name the present version of ${resource}, which is ${present}. Read that again, then send the request again.`,
    { etag: present },
  );
}

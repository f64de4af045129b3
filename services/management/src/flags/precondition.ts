import { type Refusal, refuse } from "@halyard/service";
import { etagOf } from "./flag-resource.ts";

/**
 * `If-Match` (RFC 9110, section 13.1.1): a list of entity tags of which one must be the present one,
 * or `*`. The comparison is strong, so a weak tag never matches. `resource` is the path whose tag it
 * is: a flag has another one than its state. Answers the refusal, or undefined when the change may go
 * on.
 */
export function checkIfMatch(
  ifMatch: string | undefined,
  current: { version: number },
  resource: string,
): Refusal | undefined {
  if (ifMatch === undefined) return undefined;
  const tags = ifMatch.split(",").map((tag) => tag.trim());
  const present = etagOf(current);
  if (tags.includes("*") || tags.includes(present)) return undefined;
  return refuse(
    "CONFLICT_003",
    `If-Match does not name the present version of ${resource}, which is ${present}. Read that again, then send the request again.`,
    { etag: present },
  );
}

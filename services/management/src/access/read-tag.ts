import { createHash } from "node:crypto";
import { stringify } from "@halyard/http";

/**
 * Returns the entity tag of a resource for `If-None-Match`: the version and a hash of the resource. The resource also
 * depends on what does not change its version, such as evaluations and the environment of the key.
 */
export function readTagOf(resource: { version: number }): string {
  const hash = createHash("sha256").update(stringify(resource)).digest("base64url");
  return `"${resource.version}-${hash}"`;
}

import { createHash } from "node:crypto";
import type { Answer } from "./answer.ts";
import { namesTag } from "./entity-tag.ts";

/**
 * Prepares a response that never changes while the process runs. Its ETag is a hash of the body, so that all processes
 * of a release return the same one. The returned function returns 304 if `If-None-Match` contains the ETag. Both
 * responses have the given `headers`.
 */
export function fixedAnswer(
  body: unknown,
  headers: Readonly<Record<string, string>>,
): (ifNoneMatch: string | undefined) => Answer {
  const json = Buffer.from(JSON.stringify(body));
  const etag = `"${createHash("sha256").update(json).digest("base64url")}"`;
  const whole: Answer = { status: 200, json, headers: { ...headers, etag } };
  const notModified: Answer = { status: 304, headers: { ...headers, etag } };
  return (ifNoneMatch) =>
    ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag) ? notModified : whole;
}

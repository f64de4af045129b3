import { createHash } from "node:crypto";
import type { Answer } from "./answer.ts";
import { namesTag } from "./entity-tag.ts";

/**
 * An answer that is the same as long as the program runs: it is written once, and its tag is a hash
 * of those bytes, so that every process of a release gives the same. What comes back answers 304 to
 * those whose `If-None-Match` names the tag. `headers` go with both.
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

import { createProblem, type Problem } from "./answer.ts";

/**
 * Whether `If-None-Match` names a tag: the client has these values already. The comparison is weak, so
 * a tag that a proxy has marked with `W/` on the way counts.
 *
 * No tag of a valid list holds a quote between its own, and neither do ours. So where our tag stands in
 * a valid list with its quotes, it is a member. A list that is not valid may match although it has no
 * such member; that does no harm, because only who was given our present tag can send it.
 */
export function namesTag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.includes(etag) || ifNoneMatch.trim() === "*";
}

/** Elements of a list, which commas separate unless they are between quotes. */
const listElements = /(?:[^",]|"[^"]*"?)+/g;

/** RFC 9110, section 8.8.3. Node decodes header fields as Latin-1. */
const entityTag = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

const notEntityTags = createProblem(
  "VALIDATION_001",
  'If-Match must be * or entity tags in double quotes, such as "7" or "6", "7".',
);

/** Reads the entity tags of `If-Match`; `*` stands alone. */
export function readIfMatch(header: string): readonly string[] | Problem {
  const elements = header.match(listElements) ?? [];
  const tags = elements.map((element) => element.trim()).filter((element) => element !== "");
  if (tags.length === 1 && tags[0] === "*") return tags;
  return tags.length > 0 && tags.every((tag) => entityTag.test(tag)) ? tags : notEntityTags;
}

import { createProblem, type Problem } from "./answer.ts";

/**
 * Returns whether `If-None-Match` contains a tag. The comparison is weak, so it ignores a `W/` that a proxy has added.
 *
 * A search for the quoted tag suffices: tags contain no quotes, so a match in a valid list is a member of the list. An
 * invalid list may match without such a member. That does no harm, because only a client that received the current tag
 * can send it.
 */
export function namesTag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.includes(etag) || ifNoneMatch.trim() === "*";
}

/** Elements of a list. Commas separate them, except between quotes. */
const listElements = /(?:[^",]|"[^"]*"?)+/g;

/** RFC 9110, section 8.8.3. Node decodes header fields as Latin-1. */
const entityTag = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

const notEntityTags = createProblem(
  "VALIDATION_001",
  'If-Match must be * or entity tags in double quotes, such as "7" or "6", "7".',
);

/** Parses the entity tags of `If-Match`. `*` must be the only element. */
export function readIfMatch(header: string): readonly string[] | Problem {
  const elements = header.match(listElements) ?? [];
  const tags = elements.map((element) => element.trim()).filter((element) => element !== "");
  if (tags.length === 1 && tags[0] === "*") return tags;
  return tags.length > 0 && tags.every((tag) => entityTag.test(tag)) ? tags : notEntityTags;
}

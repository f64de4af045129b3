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

/** Returns the entity tag of a resource with a version: the version in quotes. */
export function etagOf({ version }: { version: number }): string {
  return `"${version}"`;
}

/** Returns the part of a tag that identifies the version. The tag of a read of a flag also has a hash. */
function versionTagOf(tag: string): string {
  return tag.replace(/^("\d+)-[\w-]+"$/, '$1"');
}

/** Checks `If-Match` against the version of a resource. `resource` is its path. */
export function checkIfMatch(
  ifMatch: readonly string[] | undefined,
  current: { version: number },
  resource: string,
): Problem | undefined {
  const tags = ifMatch?.map(versionTagOf);
  return checkMatches(tags, etagOf(current), `the present version of ${resource}`);
}

/**
 * Checks `If-Match` (RFC 9110, section 13.1.1): one of the entity tags must be the present one, or the list is `*` and
 * there is a present one. The comparison is strong, so a weak tag never matches.
 */
export function checkMatches(
  ifMatch: readonly string[] | undefined,
  present: string | undefined,
  subject: string,
): Problem | undefined {
  if (ifMatch === undefined) return undefined;
  if (present !== undefined && ifMatch.some((tag) => tag === "*" || tag === present))
    return undefined;
  const fact = present === undefined ? "because there is none" : `which is ${present}`;
  return createProblem(
    "CONFLICT_003",
    `If-Match does not name ${subject}, ${fact}. Read that again, then send the request again.`,
    present === undefined ? undefined : { etag: present },
  );
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

/**
 * Whether `If-None-Match` names a tag: the client has these values already. The comparison is weak, so
 * a tag that a proxy has marked with `W/` on the way counts.
 *
 * Our tags hold no quote, comma or blank between their quotes, and no tag of a valid list can hold a
 * quote at all. So where the tag stands in the list with its quotes, it is a member of it.
 */
export function namesTag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.includes(etag) || ifNoneMatch.trim() === "*";
}

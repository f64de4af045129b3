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

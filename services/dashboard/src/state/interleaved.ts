/** Adds the missing members of `others` to a list, each after the member that it follows in `others`. */
export function interleaved(list: readonly string[], others: readonly string[]): readonly string[] {
  return others.reduce((all, member, at) => {
    if (all.includes(member)) return all;
    return all.toSpliced(all.indexOf(others[at - 1] ?? "") + 1, 0, member);
  }, list);
}

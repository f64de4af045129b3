import type { Difference } from "../state/difference.ts";

/** A variation with the JSON text of its value. */
type Valued = { readonly key: string; readonly json: string; readonly name?: string | undefined };

/** Characters of a value in a text. Values can have 64 KiB. */
const maxValueText = 200;

function textOf({ json, name }: Valued): string {
  const shown = json.length > maxValueText ? `${json.slice(0, maxValueText)}…` : json;
  return name === undefined || name === "" ? shown : `${shown} (${name})`;
}

/** Returns the differences between two lists of variations, one for each key. */
export function variationDifferences(
  before: readonly Valued[],
  after: readonly Valued[],
): Difference[] {
  const former = new Map(before.map((each) => [each.key, each]));
  const kept = new Set(after.map(({ key }) => key));
  return [
    ...after.flatMap((each): Difference[] => {
      const old = former.get(each.key);
      if (old === undefined) return [{ label: each.key, after: textOf(each) }];
      const isSame = old.json === each.json && (old.name ?? "") === (each.name ?? "");
      return isSame ? [] : [{ label: each.key, before: textOf(old), after: textOf(each) }];
    }),
    ...before
      .filter(({ key }) => !kept.has(key))
      .map((each) => ({ label: each.key, before: textOf(each) })),
  ];
}

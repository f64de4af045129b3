import type { EnvironmentView } from "./environment-view.ts";

/** What a client that knows one view must hear to know another. */
export type ViewDifference = {
  /** The values that are new or different, by flag key. */
  changed: readonly (readonly [key: string, value: boolean])[];
  /** The keys of flags that are no more. */
  removed: readonly string[];
};

export function differenceBetween(before: EnvironmentView, after: EnvironmentView): ViewDifference {
  const changed: [string, boolean][] = [];
  for (const [key, { value }] of after.outcomes)
    if (before.outcomes.get(key)?.value !== value) changed.push([key, value]);
  return { changed, removed: removedKeys(before, after) };
}

export function removedKeys(before: EnvironmentView, after: EnvironmentView): string[] {
  const removed: string[] = [];
  for (const key of before.outcomes.keys()) if (!after.outcomes.has(key)) removed.push(key);
  return removed;
}

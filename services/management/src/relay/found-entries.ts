import type { EntryOrigin } from "./entry-origin.ts";

/** An entry that is in the snapshot behind the recorded sequence. */
export type FoundEntry = { key: string; sha256: string; origin: EntryOrigin };

/** A row of the outbox whose value has no recorded sequence: it is unsent, or a newer value has overtaken it. */
export type UnrecordedValue = { id: number; key: string; sha256: string; isSent: boolean };

/**
 * Compares entries that a former leader published with the rows of the outbox. Unsent rows of
 * older values must be settled. Otherwise they are published after the newer value, and a reader that starts in
 * between uses them: for example a key that is already revoked.
 */
export function compareFound(
  entries: readonly FoundEntry[],
  values: readonly UnrecordedValue[],
): { unexplained: FoundEntry[]; overtaken: number[] } {
  const valuesOf = Map.groupBy(values, ({ key }) => key);
  const unexplained: FoundEntry[] = [];
  const overtaken: number[] = [];
  for (const entry of entries) {
    const { key, sha256 } = entry;
    const known = valuesOf.get(key) ?? [];
    const published = known.findLast((value) => value.sha256 === sha256);
    if (published === undefined) unexplained.push(entry);
    else for (const { id, isSent } of known) if (!isSent && id < published.id) overtaken.push(id);
  }
  return { unexplained, overtaken };
}

import type { SnapshotRevision } from "@halyard/contracts";

/**
 * The text of a notification that rows are published: `12,13` or, for entries of the snapshot,
 * `12,13,<epoch>@<revision>`. Release 0.1.0 reads the last item as a row
 * that no write waits for.
 */
export type PublishedHint = { rowIds: readonly number[]; revision?: SnapshotRevision | undefined };

export function encodePublished({ rowIds, revision }: PublishedHint): string {
  const items: (number | string)[] = [...rowIds];
  if (revision !== undefined) items.push(`${revision.epoch}@${revision.revision}`);
  return items.join(",");
}

export function decodePublished(text: string): PublishedHint {
  const items = text.split(",");
  const [epoch, revision] = items.at(-1)?.split("@") ?? [];
  if (epoch === undefined || revision === undefined) return { rowIds: items.map(Number) };
  return {
    rowIds: items.slice(0, -1).map(Number),
    revision: { epoch, revision: Number(revision) },
  };
}

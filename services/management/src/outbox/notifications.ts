import type { SnapshotRevision } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import type { Logger } from "pino";

/**
 * Hints between the replicas, by PostgreSQL's notifications: the leader of the relay learns that there are unsent
 * rows, and the other replicas learn which rows are published. Hints may be lost; only speed depends on them.
 */
const writtenChannel = "outbox_written";
const publishedChannel = "outbox_published";

/**
 * Returns a function that notifies the leader. Notifications are sent outside the transactions, because one inside
 * makes all commits queue for one lock. One at a time is sent; it serves everything committed before.
 */
export function createLeaderNotifier(sql: Sql, logger: Logger): () => void {
  let isDue = false;
  let isSending = false;

  async function send(): Promise<void> {
    isSending = true;
    while (isDue) {
      isDue = false;
      await sql`select pg_notify(${writtenChannel}, '')`.catch((err: unknown) => {
        logger.warn({ err }, "the relay's leader could not be notified; it looks by itself");
      });
    }
    isSending = false;
  }

  return () => {
    isDue = true;
    if (!isSending) void send();
  };
}

/** Rows that are published, and a revision of the snapshot that contains their entries. */
export type PublishedRows = { rowIds: readonly number[]; revision?: SnapshotRevision | undefined };

/** A notification holds 8,000 bytes; an id and its comma take at most 17, and a revision at most 53. */
const idsPerNotification = 400;

/** Sends the ids of published rows, and the revision of the snapshot, to the other replicas. */
export async function notifyPublished(
  sql: Sql | Transaction,
  rowIds: readonly number[],
  revision: SnapshotRevision | undefined,
): Promise<void> {
  let from = 0;
  do {
    const published = { rowIds: rowIds.slice(from, from + idsPerNotification), revision };
    await sql`select pg_notify(${publishedChannel}, ${encodePublished(published)})`;
    from += idsPerNotification;
  } while (from < rowIds.length);
}

/**
 * The text of the notification: `12,13` or, for entries of the snapshot, `12,13,<epoch>@<revision>`. Release
 * 0.1.0 reads the last item as a row that no write waits for.
 */
export function encodePublished({ rowIds, revision }: PublishedRows): string {
  const items: (number | string)[] = [...rowIds];
  if (revision !== undefined) items.push(`${revision.epoch}@${revision.revision}`);
  return items.join(",");
}

export function decodePublished(text: string): PublishedRows {
  const items = text.split(",");
  const [epoch, revision] = items.at(-1)?.split("@") ?? [];
  if (epoch === undefined || revision === undefined) return { rowIds: items.map(Number) };
  return {
    rowIds: items.slice(0, -1).map(Number),
    revision: { epoch, revision: Number(revision) },
  };
}

/** Listens for both hints, until the signal is aborted. */
export function listenForNotifications(
  sql: Sql,
  options: {
    onWritten: () => void;
    onPublished: (published: PublishedRows) => void;
    signal: AbortSignal;
  },
): Promise<void> {
  const { onWritten, onPublished, signal } = options;
  return sql.listen({
    channels: {
      [writtenChannel]: onWritten,
      [publishedChannel]: (text) => onPublished(decodePublished(text)),
    },
    // A hint may have been lost.
    onListening: onWritten,
    signal,
  });
}

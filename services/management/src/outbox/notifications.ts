import type { SnapshotRevision } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import type { Logger } from "pino";

/**
 * Notifications between the replicas, sent by PostgreSQL: the leader of the relay learns of unsent rows, and the other
 * replicas learn which rows are published. A lost notification costs only latency.
 */
const writtenChannel = "outbox_written";
const publishedChannel = "outbox_published";

/**
 * Returns a function that notifies the leader of unsent rows. Notifications are sent outside of transactions, because a
 * notification inside makes all commits queue for one lock. Only one notification is in flight; it covers everything
 * that was committed before it.
 */
export function createLeaderNotifier(sql: Sql, logger: Logger): () => void {
  let isDue = false;
  let isSending = false;

  async function send(): Promise<void> {
    isSending = true;
    while (isDue) {
      isDue = false;
      await sql`select pg_notify(${writtenChannel}, '')`.catch((err: unknown) => {
        logger.warn({ err }, "the relay's leader could not be notified; it polls the outbox");
      });
    }
    isSending = false;
  }

  return () => {
    isDue = true;
    if (!isSending) void send();
  };
}

/** Ids of published rows, and a snapshot revision that contains their entries. */
export type PublishedRows = { rowIds: readonly number[]; revision?: SnapshotRevision | undefined };

/** A notification holds 8,000 bytes. An id with its comma takes at most 17 bytes, and a revision at most 53. */
const idsPerNotification = 400;

/** Notifies the other replicas of published rows and of the snapshot revision. */
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
 * Encodes a notification: `12,13` or, for entries of the snapshot, `12,13,<epoch>@<revision>`. Release 0.1.0 parses the
 * last item as a row that no write waits for.
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

/** Listens for both notifications until the signal is aborted. */
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
    // A notification may have been lost.
    onListening: onWritten,
    signal,
  });
}

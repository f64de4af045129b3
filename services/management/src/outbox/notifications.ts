import { compileCheck, SnapshotRevision } from "@halyard/contracts";
import { parseJson } from "@halyard/jetstream";
import type { Sql, Transaction } from "@halyard/postgres";
import type { Logger } from "pino";
import { z } from "zod";

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

/** Ids of published rows of the snapshot, and a revision that contains their entries. Both are empty for events. */
const PublishedRows = z.object({
  rowIds: z.array(z.int()),
  revision: SnapshotRevision.optional(),
});
type PublishedRows = z.infer<typeof PublishedRows>;
const checkPublished = compileCheck(PublishedRows);

/** A notification holds 8,000 bytes. An id with its comma takes at most 17 bytes, and the rest at most 110. */
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
    await sql`select pg_notify(${publishedChannel}, ${JSON.stringify(published)})`;
    from += idsPerNotification;
  } while (from < rowIds.length);
}

/** Parses a notification. Every role of the database can send one, so it can be malformed. */
export function parsePublished(text: string): PublishedRows | undefined {
  const checked = checkPublished(parseJson(Buffer.from(text)));
  return checked.ok ? checked.value : undefined;
}

/** Listens for both notifications until the signal is aborted. */
export function listenForNotifications(
  sql: Sql,
  options: {
    onWritten: () => void;
    onPublished: (published: PublishedRows) => void;
    signal: AbortSignal;
    logger: Logger;
  },
): Promise<void> {
  const { onWritten, onPublished, signal, logger } = options;
  return sql.listen({
    channels: {
      [writtenChannel]: onWritten,
      [publishedChannel](text) {
        const published = parsePublished(text);
        if (published !== undefined) onPublished(published);
        else logger.warn("ignored a malformed notification of published rows");
      },
    },
    // A notification may have been lost.
    onListening: onWritten,
    signal,
  });
}

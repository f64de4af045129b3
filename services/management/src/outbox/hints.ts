import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { decodePublished, type PublishedHint } from "./published-hint.ts";

/**
 * Hints between the replicas, by PostgreSQL's notifications: "there is something to publish" to
 * whoever leads the relay, and "these rows are published" back. Hints may be lost; nothing depends on
 * them but speed.
 */
export const writtenChannel = "outbox_written";

/**
 * Tells the leader, if that is another process. Hints are sent outside the transactions, because a
 * notification inside makes all commits queue for one lock, and one at a time: a hint that is on its
 * way serves for everything committed before it is sent.
 */
export function createLeaderHint(sql: Sql, logger: Logger): () => void {
  let state: "idle" | "sending" | "again" = "idle";

  async function send(): Promise<void> {
    do {
      state = "sending";
      await sql`select pg_notify(${writtenChannel}, '')`.catch((error: unknown) => {
        logger.warn({ err: error }, "the relay's leader was not told; it looks by itself");
      });
    } while ((state as string) === "again");
    state = "idle";
  }

  return () => {
    if (state === "idle") void send();
    else state = "again";
  };
}

/** Listens for both hints, until the signal is aborted. */
export function listenForHints(
  sql: Sql,
  options: {
    publishedChannel: string;
    onWritten: () => void;
    onPublished: (hint: PublishedHint) => void;
    signal: AbortSignal;
  },
): Promise<void> {
  const { publishedChannel, onWritten, onPublished, signal } = options;
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

import { setTimeout as delay } from "node:timers/promises";
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

/** How soon listening is tried again while PostgreSQL is away at the start. */
const retryAfterMs = 1_000;

/**
 * Listens for both hints, from when PostgreSQL is there. Afterwards the client library listens again
 * by itself when a connection is lost. Resolves when listening, or when the signal ends the trying.
 */
export async function listenForHints(
  sql: Sql,
  options: {
    publishedChannel: string;
    onWritten: () => void;
    onPublished: (hint: PublishedHint) => void;
    signal: AbortSignal;
    logger: Logger;
  },
): Promise<void> {
  while (!options.signal.aborted) {
    try {
      await sql.listen(writtenChannel, options.onWritten);
      await sql.listen(options.publishedChannel, (text) =>
        options.onPublished(decodePublished(text)),
      );
      return;
    } catch (error) {
      options.logger.warn({ err: error }, "not listening for hints yet; trying again");
      await delay(retryAfterMs, undefined, { signal: options.signal }).catch(() => undefined);
    }
  }
}

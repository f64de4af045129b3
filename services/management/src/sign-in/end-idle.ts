import { isProblem } from "@halyard/http";
import { isOutage } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { Writer } from "../outbox/write.ts";
import { endIdleSessions, removeExpired } from "../people/sessions.ts";

const intervalMs = 60_000;
/** Rows of a batch, which is one transaction. */
const batchSize = 500;

/**
 * Ends unused sessions, and removes the rows of expired ones. While management is unavailable, unused sessions last until
 * they expire.
 */
export function startEndingIdle(options: { writer: Writer; now: () => Date; logger: Logger }): {
  stop(): Promise<void>;
} {
  return startInterval((signal) => endIdle(options, signal), {
    intervalMs,
    isExpected: isOutage,
    beginsAtOnce: true,
    onFailure: (err) =>
      options.logger.warn({ err }, "unused sessions could not be ended; retrying later"),
  });
}

export async function endIdle(
  { writer, now }: { writer: Writer; now: () => Date },
  signal: AbortSignal,
): Promise<void> {
  for (let rows = batchSize; rows === batchSize && !signal.aborted; ) {
    const done = await writer(async (write) => {
      const ended = await endIdleSessions(write, now(), batchSize);
      return { rows: Math.max(ended, await removeExpired(write.tx, now(), batchSize)) };
    });
    rows = isProblem(done) ? 0 : done.rows;
  }
}

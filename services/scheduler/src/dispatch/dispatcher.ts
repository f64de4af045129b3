import { isOutage, type Sql } from "@halyard/postgres";
import { createWakeUp } from "@halyard/timing";
import type { Logger } from "pino";
import { claimDue, msUntilNextDue } from "./dispatch-store.ts";
import type { SendDue } from "./send-due.ts";

/**
 * Sends changes to management when they are due. The dispatcher sleeps until the next change is due, and polls
 * at least every second: another replica may have stored a schedule that is due sooner, or the clock may have
 * been set. It claims nothing while NATS is unavailable, so that unsent changes can still be cancelled.
 *
 * A sent change without an outcome is due again after half a minute, because the process may have crashed before it
 * sent the change, or the broker may have lost the message or the outcome. A repeated message has the same id, so
 * management does not apply the change twice and publishes its outcome again.
 */
export type Dispatcher = {
  /** Ends the current sleep, because a change may be due sooner. */
  wake(): void;
  /** Stops the dispatcher. Resolves after the current batch is sent. */
  stop(): Promise<void>;
};

const pollIntervalMs = 1_000;
/** Maximum number of changes per claim. A claim locks its rows for milliseconds and leaves some to other replicas. */
const claimBatch = 200;
const retryAfterMs = 250;
const lockTimeoutMs = 20;

export function startDispatcher(options: {
  sql: Sql;
  /** Returns true while NATS is available. */
  canSend: () => boolean;
  send: SendDue;
  logger: Logger;
}): Dispatcher {
  const { sql, canSend, send, logger } = options;
  const stopping = new AbortController();
  const wakeUp = createWakeUp();

  async function run(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) await wakeUp.sleep(await dispatch(), signal);
  }

  /** Sends due changes. Returns the time until the next run, in milliseconds. */
  async function dispatch(): Promise<number> {
    if (!canSend()) return pollIntervalMs;
    try {
      const claimed = await claimDue(sql, claimBatch);
      const again = claimed.filter(({ sendCount }) => sendCount > 1).length;
      if (again > 0) logger.warn({ changes: again }, "resending due changes without an outcome");
      if (claimed.length > 0) await send(claimed);
      if (claimed.length === claimBatch) return 0;
      const untilNextMs = (await msUntilNextDue(sql)) ?? pollIntervalMs;
      // Another transaction has locked the due changes; it takes milliseconds.
      if (claimed.length === 0 && untilNextMs <= 0) return lockTimeoutMs;
      return Math.min(untilNextMs, pollIntervalMs);
    } catch (error) {
      if (!isOutage(error)) throw error;
      logger.warn({ err: error }, "cannot send due changes; retrying");
      return retryAfterMs;
    }
  }

  const running = run();
  return {
    wake: wakeUp.wake,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

import { isOutage, type Sql } from "@halyard/postgres";
import { createWakeUp } from "@halyard/timing";
import type { Logger } from "pino";
import { claimDue, msUntilNextDue } from "./dispatch-store.ts";
import type { SendDue } from "./send-due.ts";

/**
 * Sends changes to management when their time has come. It sleeps until the very moment at which the
 * next one is due, and looks every second besides: another replica may have taken a schedule that is
 * due sooner, or the clock may have been set. Nothing is claimed while NATS is away, so that what
 * cannot be sent can still be cancelled.
 *
 * A process that dies after it has claimed leaves changes that are marked as sent and are not; they
 * are found as lost messages.
 */
export type Dispatcher = {
  /** There may be something that is due sooner than what is waited for. */
  wake(): void;
  /** Ends after what is just being sent. */
  stop(): Promise<void>;
};

const pollIntervalMs = 1_000;
/** One statement's worth: its rows are locked for milliseconds, and other replicas get their share. */
const claimBatch = 200;
const retryAfterMs = 250;
const lockTimeoutMs = 20;

export function startDispatcher(options: {
  sql: Sql;
  /** Whether NATS is there to send to. */
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

  /** Sends what is due; answers how long there is nothing to do. */
  async function dispatch(): Promise<number> {
    if (!canSend()) return pollIntervalMs;
    try {
      const claimed = await claimDue(sql, claimBatch);
      if (claimed.length > 0) await send(claimed);
      if (claimed.length === claimBatch) return 0;
      const untilNextMs = (await msUntilNextDue(sql)) ?? pollIntervalMs;
      // What is due and was not to be had is locked by somebody, who needs a moment.
      if (claimed.length === 0 && untilNextMs <= 0) return lockTimeoutMs;
      return Math.min(untilNextMs, pollIntervalMs);
    } catch (error) {
      if (!isOutage(error)) throw error;
      logger.warn({ err: error }, "what is due is not sent yet");
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

import { pause } from "@halyard/timing";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { failureName } from "./failures.ts";

/**
 * Repeats attempts until the signal is aborted or the connection is closed. An attempt lasts until a failure, and
 * resolves with the reason or rejects. The same reason is logged only once until an attempt works.
 */
type Attempts = {
  /** Reports that the current attempt works. The next failure is logged even if its reason is the same. */
  works(): void;
  /** Returns the reason for the end of the last attempt; undefined if the current one works. */
  lastReason(): string | undefined;
  ended: Promise<void>;
};

export function repeatAttempts(options: {
  connection: NatsConnection;
  attempt: () => Promise<string>;
  /** Returns the pause before the next attempt. */
  delayMs: () => number;
  signal: AbortSignal;
  /** Message of the log entry about the end of an attempt. */
  interrupted: string;
  logger: Logger;
}): Attempts {
  const { connection, attempt, delayMs, signal, interrupted, logger } = options;
  let lastReason: string | undefined;

  async function run(): Promise<void> {
    while (!signal.aborted && !connection.isClosed()) {
      const reason = await attempt().catch(failureName);
      if (signal.aborted) return;
      if (reason !== lastReason) logger.warn({ reason }, interrupted);
      lastReason = reason;
      await pause(delayMs(), signal);
    }
  }

  return {
    works() {
      lastReason = undefined;
    },
    lastReason: () => lastReason,
    ended: run(),
  };
}

import { pause } from "@halyard/timing";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { apiTimeoutMs } from "./connect.ts";
import { watchConnection } from "./connection-watch.ts";
import { failureName } from "./failures.ts";
import { type FollowSource, followOnce } from "./follow-once.ts";

/**
 * Follows a stream of newest values: reads all of them, then each change. Any irregularity ends the
 * attempt, and the source decides from where the next one reads. The reader keeps its state in between.
 *
 * Each attempt has a signal. The loss of the connection, the watchdog and `stop` abort it. The loop then
 * continues without waiting for the attempt, and an aborted attempt delivers no more messages.
 */
export type FollowedStream = {
  /** True while everything in the stream has been delivered, as far as this process can detect. */
  isCurrent(): boolean;
  stop(): Promise<void>;
};

const firstRetryDelayMs = 250;
/** Reading is expensive for the broker, so readings that fail are repeated less and less often. */
const longestRetryDelayMs = 5_000;
/** Longer than the longest delay and the time-outs of all requests of one attempt together. */
const defaultStalledAfterMs = 20_000;
/** Checks of the watchdog in that time. */
const checksUntilStalled = 10;

export function followStream(options: {
  connection: NatsConnection;
  source: FollowSource;
  logger: Logger;
  /** Time without progress after which the watchdog restarts the follower. */
  stalledAfterMs?: number;
}): FollowedStream {
  const { connection, source } = options;
  const { stream } = source;
  const logger = options.logger.child({ stream });
  const watch = watchConnection(connection);
  const stopping = new AbortController();
  let attempt = new AbortController();
  let current: AbortSignal | undefined;
  let restarts = 0;
  let idleChecks = 0;
  /** Readings that ended before they were current, without interruption. */
  let failedReadings = 0;
  let lastReason: string | undefined;
  const isCurrent = () => current === attempt.signal && !current.aborted;

  async function run(): Promise<void> {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    while (!stopping.signal.aborted && !connection.isClosed()) {
      attempt = new AbortController();
      const { signal } = attempt;
      const following = followOnce({
        ...{ connection, manager, watch, source, signal, logger },
        onReading: () => {
          failedReadings += 1;
        },
        onMessage: () => {
          idleChecks = 0;
        },
        onCurrent: () => {
          failedReadings = 0;
          current = signal;
          lastReason = undefined;
        },
      });
      const reason = await Promise.race([reasonOf(signal), following.catch(failureName)]);
      attempt.abort(reason);
      if (stopping.signal.aborted) return;
      if (reason !== lastReason) logger.warn({ reason }, "following the stream was interrupted");
      lastReason = reason;
      await pause(retryDelayMs(failedReadings, Math.random()), stopping.signal);
    }
  }

  /** Counts checks instead of time, because time also passes while the process is suspended. */
  function restartIfStalled(): void {
    idleChecks = isCurrent() || !watch.isConnected() ? 0 : idleChecks + 1;
    if (idleChecks < checksUntilStalled) return;
    idleChecks = 0;
    restarts += 1;
    logger.error({ lastReason, restarts }, "not current while NATS is connected; restarting");
    attempt.abort("the watchdog found no progress");
  }

  const { stalledAfterMs = defaultStalledAfterMs } = options;
  const watchdog = setInterval(restartIfStalled, stalledAfterMs / checksUntilStalled).unref();
  const stopListening = watch.onLoss(() => attempt.abort("the connection to NATS was lost"));
  const state = { stream, isCurrent, restarts: () => restarts };
  watch.followers.add(state);
  const running = run();
  return {
    isCurrent,
    async stop() {
      stopping.abort();
      attempt.abort("stopped");
      await running;
      clearInterval(watchdog);
      stopListening();
      watch.followers.delete(state);
    },
  };
}

/** Returns a delay that doubles with each failed reading. `random` (0 to 1) spreads followers over half of it. */
export function retryDelayMs(failedReadings: number, random: number): number {
  const delayMs = Math.min(firstRetryDelayMs * 2 ** failedReadings, longestRetryDelayMs);
  return delayMs * (0.5 + random / 2);
}

/** Resolves with the reason when the signal is aborted. */
function reasonOf(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(String(signal.reason)), { once: true });
  });
}

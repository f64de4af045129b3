import type { Logger } from "pino";
import { cleanUpEveryMs, startCleanUp } from "./clean-up.ts";
import type { RelayMetrics } from "./relay-metrics.ts";
import { leadOneRound, type RoundOptions } from "./round.ts";
import { createWakeUp } from "./wake-up.ts";

/**
 * The relay carries the outbox to JetStream. Of all replicas one leads, by a lease in PostgreSQL.
 *
 * A leader first brings outbox and streams to agree, then publishes what is unsent, whenever it is
 * woken and on a timer. Once a second it renews its lease and looks whether both streams are still
 * those that it knows. Anything unexpected, from a lost acknowledgement to a deleted stream, ends the
 * round; the next one starts by bringing outbox and streams to agree again. So there is one way to
 * recover, and it is the way to start.
 */
export type Relay = {
  /** There is something to publish. */
  wake(): void;
  isLeading(): boolean;
  stop(): Promise<void>;
};

/** How soon a follower asks for the lease again, and a leader tries again after a fault. */
const retryAfterMs = 500;

export function startRelay(
  options: Omit<
    RoundOptions,
    "wakeUp" | "onLeading" | "onDatabaseBehind" | "onPublished" | "onBacklog" | "onLogSize"
  > & {
    cleanUpEveryMs?: number;
    metrics: RelayMetrics;
    logger: Logger;
  },
): Relay {
  const { lease, metrics, logger } = options;
  const wakeUp = createWakeUp();
  const stop = new AbortController();
  let leading = false;
  const round: RoundOptions = {
    ...options,
    wakeUp,
    onLeading: () => setLeading(true),
    onDatabaseBehind: () => metrics.databaseBehind.inc(),
    onPublished: (messages) => metrics.published.inc(messages),
    onBacklog: ({ rows, oldestSeconds }) => {
      metrics.unsentRows.set(rows);
      metrics.oldestUnsentSeconds.set(oldestSeconds);
    },
    onLogSize: ({ bytes, maxBytes, unread }) => {
      metrics.logBytes.set(bytes);
      metrics.logMaxBytes.set(maxBytes ?? 0);
      metrics.logUnread.set(unread);
    },
  };

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        if (await lease.acquire()) await leadOneRound(round, stop.signal);
      } catch (error) {
        // Outages and lost races end here; the next round looks at everything afresh.
        logger.warn({ err: error }, "the relay starts over");
        metrics.roundsFailed.inc();
      }
      setLeading(false);
      await wakeUp.sleep(retryAfterMs, stop.signal);
    }
    await lease.release().catch((error: unknown) => {
      logger.warn({ err: error }, "the lease was not given up; it ends by itself");
    });
  }

  function setLeading(now: boolean): void {
    if (now !== leading) logger.info(now ? "leading the relay" : "no longer leading the relay");
    leading = now;
    metrics.leading.set(now ? 1 : 0);
    if (now) return;
    // What another process leads, it also measures.
    metrics.unsentRows.set(0);
    metrics.oldestUnsentSeconds.set(0);
    metrics.logBytes.set(0);
    metrics.logMaxBytes.set(0);
    metrics.logUnread.set(0);
  }

  const isLeading = () => leading && lease.isHeld();
  const running = run();
  const cleaning = startCleanUp({
    ...options,
    isLeading,
    everyMs: options.cleanUpEveryMs ?? cleanUpEveryMs,
  });
  return {
    wake: wakeUp.wake,
    isLeading,
    stop: async () => {
      stop.abort();
      await Promise.all([running, cleaning.stop()]);
    },
  };
}

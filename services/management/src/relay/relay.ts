import { createWakeUp, pause } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { leadOneTerm, type RelayMetrics, type TermOptions } from "./term.ts";

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
  options: Omit<TermOptions, "wakeUps" | "onLeading"> & { logger: Logger },
): Relay {
  const { lease, metrics, logger } = options;
  const wakeUps = { events: createWakeUp(), snapshot: createWakeUp() };
  const stop = new AbortController();
  let leading = false;
  const term: TermOptions = { ...options, wakeUps, onLeading: () => setLeading(true) };

  async function run(): Promise<void> {
    do {
      try {
        if (await lease.acquire()) await leadOneTerm(term, stop.signal);
      } catch (error) {
        // Outages and lost races end here; the next round looks at everything afresh.
        logger.warn({ err: error }, "the relay starts over");
        metrics.termsFailed.inc();
      }
      setLeading(false);
    } while (await pause(retryAfterMs, stop.signal));
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
    metrics.eventsBytes.set(0);
    metrics.eventsMaxBytes.set(0);
    metrics.eventsUnread.set(0);
  }

  const running = run();
  return {
    wake() {
      wakeUps.events.wake();
      wakeUps.snapshot.wake();
    },
    isLeading: () => leading && lease.isHeld(),
    stop: async () => {
      stop.abort();
      await running;
    },
  };
}

export function createRelayMetrics(registry: Registry): RelayMetrics {
  const registers = [registry];
  return {
    leading: new Gauge({
      name: "halyard_relay_leader",
      help: "1 while this process publishes the outbox",
      registers,
    }),
    published: new Counter({
      name: "halyard_relay_messages_published_total",
      help: "Messages that this process published from the outbox",
      registers,
    }),
    unsentRows: new Gauge({
      name: "halyard_outbox_unsent_messages",
      help: "Messages that wait in the outbox, as the leader last saw it, counted up to 10,000",
      registers,
    }),
    oldestUnsentSeconds: new Gauge({
      name: "halyard_outbox_oldest_message_age_seconds",
      help: "How long the oldest message has waited in the outbox, as the leader last saw it",
      registers,
    }),
    eventsBytes: new Gauge({
      name: "halyard_event_log_size_bytes",
      help: "Size of the log of events, as measured by the leader",
      registers,
    }),
    eventsMaxBytes: new Gauge({
      name: "halyard_event_log_size_limit_bytes",
      help: "Size at which the log of events discards its oldest ones; 0 for no bound",
      registers,
    }),
    eventsUnread: new Gauge({
      name: "halyard_event_log_unprocessed_events",
      help: "Events of the log that webhook dispatchers have not processed",
      registers,
    }),
    databaseBehind: new Counter({
      name: "halyard_relay_stream_rebuilds_total",
      help: "Times that this process rebuilt the streams because the database was older than they",
      registers,
    }),
    termsFailed: new Counter({
      name: "halyard_relay_failures_total",
      help: "Times that the relay had to bring outbox and streams to agree again after a fault",
      registers,
    }),
  };
}

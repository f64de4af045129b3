import { createWakeUp, pause } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { leadOneTerm, type RelayMetrics, type TermOptions } from "./term.ts";

/**
 * The relay publishes the outbox to JetStream. One replica leads, by a lease in PostgreSQL.
 *
 * A leader first synchronizes the outbox and the streams. Then it publishes unsent rows whenever it is woken, and on a
 * timer. Every second it renews its lease and checks that the streams are still the ones that it synchronized. Any
 * problem, from a lost acknowledgement to a deleted stream, ends the term. The next term starts with the
 * synchronization, so recovery and start are the same procedure.
 */
export type Relay = {
  /** Publishes unsent rows now, if this process leads. */
  wake(): void;
  isLeading(): boolean;
  stop(): Promise<void>;
};

/** Interval at which a follower tries to acquire the lease, and pause of a leader after a failure. */
const retryAfterMs = 500;

export function startRelay(
  options: Omit<TermOptions, "wakeUps" | "onLeading"> & { logger: Logger },
): Relay {
  const { lease, metrics, logger } = options;
  const wakeUps = { events: createWakeUp(), snapshot: createWakeUp(), people: createWakeUp() };
  const stop = new AbortController();
  let leading = false;
  const term: TermOptions = { ...options, wakeUps, onLeading: () => setLeading(true) };

  async function run(): Promise<void> {
    do {
      try {
        if (await lease.acquire()) await leadOneTerm(term, stop.signal);
      } catch (error) {
        // Outages and lost races end here. The next term synchronizes again.
        logger.warn({ err: error }, "the relay starts over");
        metrics.termsFailed.inc();
      }
      setLeading(false);
    } while (await pause(retryAfterMs, stop.signal));
    await lease.release().catch((error: unknown) => {
      logger.warn({ err: error }, "the lease was not released; it will expire");
    });
  }

  function setLeading(now: boolean): void {
    if (now !== leading) logger.info(now ? "leading the relay" : "no longer leading the relay");
    leading = now;
    metrics.leading.set(now ? 1 : 0);
    if (now) return;
    // The leader measures these. A follower reports 0.
    metrics.unsentRows.set(0);
    metrics.oldestUnsentSeconds.set(0);
    metrics.eventsBytes.set(0);
    metrics.eventsMaxBytes.set(0);
    metrics.eventsUnread.set(0);
    metrics.eventsWaitingOrganizations.set(0);
  }

  const running = run();
  return {
    wake() {
      wakeUps.events.wake();
      wakeUps.snapshot.wake();
      wakeUps.people.wake();
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
      help: "Unsent messages in the outbox, as measured by the leader, counted up to 10,000; without the events of waiting organizations",
      registers,
    }),
    oldestUnsentSeconds: new Gauge({
      name: "halyard_outbox_oldest_message_age_seconds",
      help: "Age of the oldest unsent message in the outbox, as measured by the leader; without the events of waiting organizations",
      registers,
    }),
    eventsBytes: new Gauge({
      name: "halyard_event_log_size_bytes",
      help: "Size of the event log, as measured by the leader",
      registers,
    }),
    eventsMaxBytes: new Gauge({
      name: "halyard_event_log_size_limit_bytes",
      help: "Size at which the event log discards its oldest events; 0 without a limit",
      registers,
    }),
    eventsUnread: new Gauge({
      name: "halyard_event_log_unprocessed_events",
      help: "Events in the event log that webhook dispatchers have not processed",
      registers,
    }),
    eventsWaitingOrganizations: new Gauge({
      name: "halyard_event_log_waiting_organizations",
      help: "Organizations whose events wait in the outbox, because too many of their earlier ones are unprocessed",
      registers,
    }),
    databaseBehind: new Counter({
      name: "halyard_relay_stream_rebuilds_total",
      help: "Times that this process rebuilt the streams because the database was older",
      registers,
    }),
    termsFailed: new Counter({
      name: "halyard_relay_failures_total",
      help: "Times that the relay synchronized outbox and streams again after a failure",
      registers,
    }),
  };
}

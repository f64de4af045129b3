import { Counter, Gauge, type Registry } from "prom-client";

export type RelayMetrics = {
  leading: Gauge;
  published: Counter;
  roundsFailed: Counter;
  databaseBehind: Counter;
  unsentRows: Gauge;
  oldestUnsentSeconds: Gauge;
  logBytes: Gauge;
  logMaxBytes: Gauge;
  logUnread: Gauge;
};

export function createRelayMetrics(registry: Registry): RelayMetrics {
  const registers = [registry];
  return {
    leading: new Gauge({
      name: "halyard_relay_leading",
      help: "1 while this process publishes the outbox",
      registers,
    }),
    published: new Counter({
      name: "halyard_relay_published_total",
      help: "Messages that this process published from the outbox",
      registers,
    }),
    unsentRows: new Gauge({
      name: "halyard_outbox_unsent",
      help: "Messages that wait in the outbox, as the leader last saw it, counted up to 10,000",
      registers,
    }),
    oldestUnsentSeconds: new Gauge({
      name: "halyard_outbox_oldest_unsent_seconds",
      help: "How long the oldest message has waited in the outbox, as the leader last saw it",
      registers,
    }),
    logBytes: new Gauge({
      name: "halyard_flag_events_bytes",
      help: "Size of the log of events, as measured by the leader",
      registers,
    }),
    logMaxBytes: new Gauge({
      name: "halyard_flag_events_max_bytes",
      help: "Size at which the log of events discards its oldest ones; 0 for no bound",
      registers,
    }),
    logUnread: new Gauge({
      name: "halyard_flag_events_unread",
      help: "Events of the log that webhook dispatchers have not processed",
      registers,
    }),
    databaseBehind: new Counter({
      name: "halyard_relay_database_behind_total",
      help: "Times that this process rebuilt the streams because the database was older than they",
      registers,
    }),
    roundsFailed: new Counter({
      name: "halyard_relay_rounds_failed_total",
      help: "Times that the relay had to bring outbox and streams to agree again after a fault",
      registers,
    }),
  };
}

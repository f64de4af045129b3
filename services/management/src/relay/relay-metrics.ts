import { Counter, Gauge, type Registry } from "prom-client";

export type RelayMetrics = {
  leading: Gauge;
  published: Counter;
  roundsFailed: Counter;
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
    roundsFailed: new Counter({
      name: "halyard_relay_rounds_failed_total",
      help: "Times that the relay had to bring outbox and streams to agree again after a fault",
      registers,
    }),
  };
}

import { Counter, type Registry } from "prom-client";

export type QueueMetrics = {
  messages: Counter<"queue" | "outcome">;
  retries: Counter<"queue" | "cause">;
};

/** The figures of a process's work queues; one set serves all queues that it consumes. */
export function createQueueMetrics(registry: Registry): QueueMetrics {
  const registers = [registry];
  return {
    messages: new Counter({
      name: "halyard_queue_messages_processed_total",
      help: "Messages that this process took off a queue: done, or set aside as impossible to process",
      labelNames: ["queue", "outcome"],
      registers,
    }),
    retries: new Counter({
      name: "halyard_queue_retries_total",
      help: "Attempts at a message that failed: by an outage, or by the message's own fault",
      labelNames: ["queue", "cause"],
      registers,
    }),
  };
}

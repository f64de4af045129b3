import { Counter, type Registry } from "prom-client";

export type QueueMetrics = {
  messages: Counter<"queue" | "outcome">;
  retries: Counter<"queue" | "cause">;
};

/** Creates the metrics of a process's work queues. One set serves all queues that it consumes. */
export function createQueueMetrics(registry: Registry): QueueMetrics {
  const registers = [registry];
  return {
    messages: new Counter({
      name: "halyard_queue_messages_processed_total",
      help: "Messages that this process removed from a queue: processed (`done`), dead-lettered (`set_aside`), or without a valid signature (`forged`)",
      labelNames: ["queue", "outcome"],
      registers,
    }),
    retries: new Counter({
      name: "halyard_queue_retries_total",
      help: "Failed attempts to process a message: because of an outage, or a fault of the message",
      labelNames: ["queue", "cause"],
      registers,
    }),
  };
}

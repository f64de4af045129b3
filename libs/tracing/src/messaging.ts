import type { Span } from "./span.ts";
import type { TraceContext } from "./trace-context.ts";
import { startSpan } from "./tracing.ts";

const kindOf = { send: "producer", process: "consumer" } as const;

/** Begins the span of an operation on messages, by the semantic conventions for messaging. */
export function startMessaging(
  operation: keyof typeof kindOf,
  message: {
    /** The subject, with a placeholder for each id. */
    destination: string;
    messageId?: string | undefined;
    parent?: TraceContext | null | undefined;
    links?: readonly TraceContext[];
    /** Number of messages in a batch. */
    batchCount?: number;
  },
): Span | undefined {
  const { destination, messageId, batchCount, ...context } = message;
  return startSpan(`${operation} ${destination}`, {
    ...context,
    kind: kindOf[operation],
    attributes: {
      "messaging.system": "nats",
      "messaging.destination.name": destination,
      "messaging.operation.name": operation,
      "messaging.operation.type": operation,
      "messaging.message.id": messageId,
      "messaging.batch.message_count": batchCount,
    },
  });
}

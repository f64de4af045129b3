import { isTracing, parseTraceContext, type TraceContext } from "@halyard/tracing";
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import { signatureHeader } from "./message-signatures.ts";

/**
 * Returns the headers of a message. The trace context is not signed, so that a message that is published again has the
 * same signature: it is input that any writer can forge, and must affect nothing but spans.
 */
export function messageHeaders({
  signature,
  trace,
}: {
  signature?: string | undefined;
  trace?: TraceContext | undefined;
}): { headers?: MsgHdrs } {
  if (signature === undefined && trace === undefined) return {};
  const given = headers();
  if (signature !== undefined) given.set(signatureHeader, signature);
  for (const [name, value] of Object.entries(trace ?? {})) given.set(name, value);
  return { headers: given };
}

/** Returns the trace context of a received message. Without traces, the headers are not read. */
export function traceOf(received: MsgHdrs | undefined): TraceContext | undefined {
  if (received === undefined || !isTracing()) return undefined;
  return parseTraceContext(received.get("traceparent"), received.get("tracestate"));
}

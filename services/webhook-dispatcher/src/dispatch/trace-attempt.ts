import { parseTraceContext, type Span, startSpan } from "@halyard/tracing";
import type { SendResult } from "../sending/send.ts";
import type { ClaimedDelivery } from "./claim-store.ts";

/**
 * Begins the span of an attempt, by the semantic conventions for HTTP clients, in the trace of the event. It names the
 * server, but not the URL: the URLs of chat systems contain their secret.
 */
export function startAttempt(delivery: ClaimedDelivery): Span | undefined {
  const parent = parseTraceContext(delivery.traceparent, delivery.tracestate);
  const target = URL.parse(delivery.webhook.url);
  if (parent === undefined || target === null) return undefined;
  const { hostname, port, protocol } = target;
  return startSpan("POST", {
    kind: "client",
    parent,
    attributes: {
      "http.request.method": "POST",
      "server.address": hostname,
      "server.port": Number(port || (protocol === "http:" ? 80 : 443)),
      "http.request.resend_count": delivery.attemptsMade || undefined,
      "halyard.delivery.id": delivery.id,
    },
  });
}

/** Ends the span of an attempt with its result. Undefined: no request was made. */
export function endAttempt(span: Span | undefined, result: SendResult | undefined): void {
  if (result?.kind === "answered") {
    span?.setAttributes({ "http.response.status_code": result.status });
    if (result.status >= lowestErrorStatus) span?.fail(String(result.status));
  } else span?.fail(result?.timedOut === true ? "timeout" : "not_sent");
  span?.end();
}

const lowestErrorStatus = 400;

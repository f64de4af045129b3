import {
  parseTraceContext,
  type Span,
  startSpan,
  type TraceContext,
  traceFields,
} from "@halyard/tracing";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { maskKeys } from "./masked-keys.ts";
import { pathOf } from "./request-target.ts";

/**
 * Gives each request of a measured route a span, by the semantic conventions for HTTP servers. Streams and hijacked
 * routes have none, so no span stays open with a stream, and routes that write their responses themselves cost the
 * same. The span has no query string and no body. Call this before routes are registered, and only with traces.
 */
export function traceRequests(app: FastifyInstance): void {
  app.decorateRequest(spanKey, undefined);
  app.addHook("onRoute", (route) => {
    if (route.config?.measured === false || route.config?.hijacked === true) return;
    const present = route.onRequest ?? [];
    route.onRequest = [beginSpan, ...(Array.isArray(present) ? present : [present])];
  });
}

const spanKey = Symbol("halyard.span");
type TracedRequest = FastifyRequest & { [spanKey]?: Span | undefined };

export const spanOf = (request: FastifyRequest): Span | undefined =>
  (request as TracedRequest)[spanKey];

/** Returns the member of a log line about a request that names its trace. */
export const traceFieldsOf = (request: FastifyRequest) => {
  const span = spanOf(request);
  return span === undefined ? undefined : traceFields(span);
};

const lowestServerError = 500;

function beginSpan(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
  const { method } = request;
  const { url: route = "" } = request.routeOptions;
  const span = startSpan(`${method} ${route}`, {
    kind: "server",
    parent: callerOf(request),
    attributes: {
      "http.request.method": method,
      "http.route": route,
      "url.scheme": request.protocol,
      "url.path": maskKeys(pathOf(request.raw.url ?? "")),
    },
  });
  (request as TracedRequest)[spanKey] = span;
  reply.raw.once("close", () => {
    const { statusCode, writableFinished } = reply.raw;
    if (writableFinished) span?.setAttributes({ "http.response.status_code": statusCode });
    if (!writableFinished) span?.fail("connection_closed");
    else if (statusCode >= lowestServerError) span?.fail(String(statusCode));
    span?.end();
  });
  next();
}

/** Returns the trace context of the caller. Null: the span begins a trace. */
function callerOf({ headers }: FastifyRequest): TraceContext | null {
  return parseTraceContext(headers.traceparent, headers.tracestate) ?? null;
}

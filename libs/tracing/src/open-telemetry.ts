import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  type Context,
  createTraceState,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Attributes, Span, SpanOptions, Tracer, TracingConfig } from "./span.ts";
import { formatTraceparent, parseTraceparent, type TraceContext } from "./trace-context.ts";

/**
 * Creates the tracer that sends spans with OpenTelemetry. The exporter reads its endpoint, headers and limits from the
 * environment. Spans wait in a bounded queue; while the endpoint is unavailable, they are lost. `onFailure` is called for
 * each batch that could not be sent.
 */
export function createOpenTelemetry(
  service: string,
  config: TracingConfig,
  onFailure: (error: unknown) => void,
): Tracer {
  const processor = new BatchSpanProcessor({
    exporter: reporting(new OTLPTraceExporter(), onFailure),
    scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
    maxQueueSize: config.OTEL_BSP_MAX_QUEUE_SIZE,
  });
  const provider = new TracerProvider({
    resource: resourceOf(service),
    sampler: samplerOf(config),
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer("halyard", version, { schemaUrl });
  return {
    start(name, { kind = "internal", attributes = {}, parent, links = [] }) {
      const span = tracer.startSpan(
        name,
        {
          kind: kinds[kind],
          attributes: withoutUndefined(attributes),
          links: links.flatMap(linkTo),
        },
        contextOf(parent),
      );
      const { spanContext, context } = remember(span.spanContext());
      return {
        traceId: spanContext.traceId,
        context,
        setAttributes: (more) => void span.setAttributes(withoutUndefined(more)),
        fail(errorType) {
          span.setAttribute("error.type", errorType);
          span.setStatus({ code: SpanStatusCode.ERROR });
        },
        end: () => span.end(),
      } satisfies Span;
    },
    stop: () => provider.shutdown().catch(onFailure),
  };
}

/** The version of the semantic conventions whose names spans and resources have. */
const schemaUrl = "https://opentelemetry.io/schemas/1.44.0";

const kinds: Readonly<Record<NonNullable<SpanOptions["kind"]>, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

const { version } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { version: string };

function samplerOf({
  OTEL_TRACES_SAMPLER: name,
  OTEL_TRACES_SAMPLER_ARG: share,
}: TracingConfig): Sampler {
  const root = rootSampler(name, share);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: TracingConfig["OTEL_TRACES_SAMPLER"], share: number): Sampler {
  if (name.endsWith("always_off")) return new AlwaysOffSampler();
  return name.endsWith("traceidratio")
    ? new TraceIdRatioBasedSampler(share)
    : new AlwaysOnSampler();
}

/** The variables of the environment precede these attributes. */
function resourceOf(service: string): Resource {
  const own = resourceFromAttributes(
    {
      "service.name": service,
      "service.namespace": "halyard",
      "service.version": version,
      "service.instance.id": randomUUID(),
    },
    { schemaUrl },
  );
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

const exportSucceeded = 0;

function reporting(exporter: SpanExporter, onFailure: (error: unknown) => void): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== exportSucceeded) onFailure(result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** The spans of this process, by their contexts. All other contexts are of other processes. */
const ownSpans = new WeakMap<TraceContext, SpanContext>();

function remember(spanContext: SpanContext): { spanContext: SpanContext; context: TraceContext } {
  const { traceId, spanId, traceFlags: flags } = spanContext;
  const tracestate = spanContext.traceState?.serialize();
  const traceparent = formatTraceparent({ traceId, spanId, flags });
  const context = tracestate ? { traceparent, tracestate } : { traceparent };
  ownSpans.set(context, spanContext);
  return { spanContext, context };
}

function spanContextOf(context: TraceContext): SpanContext | undefined {
  const own = ownSpans.get(context);
  if (own !== undefined) return own;
  const parsed = parseTraceparent(context.traceparent);
  if (parsed === undefined) return undefined;
  const { traceId, spanId, flags: traceFlags } = parsed;
  const { tracestate } = context;
  const remote = { traceId, spanId, traceFlags, isRemote: true };
  return tracestate === undefined
    ? remote
    : { ...remote, traceState: createTraceState(tracestate) };
}

function contextOf(parent: TraceContext | null | undefined): Context {
  const spanContext = parent ? spanContextOf(parent) : undefined;
  return spanContext === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContext);
}

function linkTo(context: TraceContext): Link[] {
  const spanContext = spanContextOf(context);
  return spanContext === undefined ? [] : [{ context: spanContext }];
}

function withoutUndefined(attributes: Attributes): Record<string, string | number> {
  const given: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) given[name] = value;
  return given;
}

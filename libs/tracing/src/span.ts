import type { TraceContext } from "./trace-context.ts";

export type Attributes = Readonly<Record<string, string | number | undefined>>;

export type SpanOptions = {
  /** "internal" by default. */
  kind?: "internal" | "server" | "client" | "producer" | "consumer";
  attributes?: Attributes;
  /** The current span by default. Null: the span begins a trace. */
  parent?: TraceContext | null | undefined;
  /** Other spans that led to this one. */
  links?: readonly TraceContext[];
};

export type Span = {
  readonly traceId: string;
  readonly context: TraceContext;
  setAttributes(attributes: Attributes): void;
  /** Marks the span as failed. The type of the error is a class or a code, not a message. */
  fail(errorType: string): void;
  end(): void;
};

export type Tracer = {
  start(name: string, options: SpanOptions): Span;
  /** Sends the spans that have ended. */
  stop(): Promise<void>;
};

/** The variables of OpenTelemetry that Halyard reads. */
export type TracingConfig = {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string | undefined;
  OTEL_SDK_DISABLED: boolean;
  OTEL_TRACES_EXPORTER: "otlp" | "none";
  OTEL_TRACES_SAMPLER: `${"" | "parentbased_"}${"always_on" | "always_off" | "traceidratio"}`;
  OTEL_TRACES_SAMPLER_ARG: number;
  OTEL_BSP_SCHEDULE_DELAY: number;
  OTEL_BSP_MAX_QUEUE_SIZE: number;
};

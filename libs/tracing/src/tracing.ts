import { AsyncLocalStorage } from "node:async_hooks";
import { exportEnvironment } from "./config.ts";
import type { Span, SpanOptions, Tracer, TracingConfig } from "./span.ts";

const active = new AsyncLocalStorage<Span>();
/**
 * The tracer of this process. It is global, like a logger of a platform: a span begins wherever work begins, and an
 * argument for it would pass through every function of the product. Nothing depends on it except spans and the
 * `trace_id` of log lines.
 */
let tracer: Tracer | undefined;
let onFailure: (error: unknown) => void = () => undefined;

/** Interval of reports that spans could not be sent. */
const reportIntervalMs = 60_000;
/** Time for the last spans when a process stops. */
const maxStopMs = 2_000;

/** Starts the traces of this process if there is an endpoint. Call it before the logger and the application are created. */
export async function startTracing(service: string, config: TracingConfig): Promise<void> {
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  const isOff = config.OTEL_SDK_DISABLED || config.OTEL_TRACES_EXPORTER === "none";
  if (endpoint === undefined || isOff) return;
  exportEnvironment(config);
  const { createOpenTelemetry } = await import("./open-telemetry.ts");
  let quietUntilMs = 0;
  tracer = createOpenTelemetry(service, config, (error) => {
    const nowMs = performance.now();
    if (nowMs < quietUntilMs) return;
    quietUntilMs = nowMs + reportIntervalMs;
    onFailure(error);
  });
}

/** Sets the function that is called, at most once a minute, when spans could not be sent. */
export function onTracesLost(listener: (error: unknown) => void): void {
  onFailure = listener;
}

/** Sends the last spans, for two seconds at most. No span begins afterwards. */
export async function stopTracing(): Promise<void> {
  const stopped = tracer;
  tracer = undefined;
  if (stopped === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const isOver = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, maxStopMs);
  });
  await Promise.race([stopped.stop(), isOver]);
  clearTimeout(timer);
}

/** Replaces the tracer in tests. */
export function setTracer(replacement: Tracer | undefined): void {
  tracer = replacement;
}

export const isTracing = (): boolean => tracer !== undefined;

/** Begins a span, which the caller ends. Returns undefined without traces. */
export function startSpan(name: string, options: SpanOptions = {}): Span | undefined {
  if (tracer === undefined) return undefined;
  const { parent = active.getStore()?.context } = options;
  return tracer.start(name, { ...options, parent });
}

/** Returns the span that the running code belongs to. */
export function currentSpan(): Span | undefined {
  return tracer === undefined ? undefined : active.getStore();
}

/** Runs work that belongs to a span. */
export function withSpan<Result>(span: Span | undefined, work: () => Result): Result {
  return span === undefined ? work() : active.run(span, work);
}

/** Runs work that belongs to a span, and ends the span with it. */
export async function inSpan<Result>(
  span: Span | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  if (span === undefined) return work();
  try {
    return await active.run(span, work);
  } catch (error) {
    span.fail(error instanceof Error ? error.name : typeof error);
    throw error;
  } finally {
    span.end();
  }
}

/** Runs a step of the current span in a child span. Without a current span, it only runs the step. */
export async function inStep<Result>(name: string, step: () => Promise<Result>): Promise<Result> {
  return inSpan(currentSpan() && startSpan(name), step);
}

/** Returns the member of a log line that names its trace. */
export function traceFields(span = currentSpan()): { trace_id?: string } {
  return span === undefined ? {} : { trace_id: span.traceId };
}

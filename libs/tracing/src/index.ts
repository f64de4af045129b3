export { startMessaging } from "./messaging.ts";
export type { Attributes, Span, SpanOptions, Tracer, TracingConfig } from "./span.ts";
export { parseTraceContext, type TraceContext } from "./trace-context.ts";
export {
  currentSpan,
  inSpan,
  inStep,
  isTracing,
  onTracesLost,
  setTracer,
  startSpan,
  startTracing,
  stopTracing,
  traceFields,
  withSpan,
} from "./tracing.ts";

import { randomBytes } from "node:crypto";
import { type Attributes, type SpanOptions, setTracer, type TraceContext } from "@halyard/tracing";

export type RecordedSpan = Omit<SpanOptions, "attributes"> & {
  name: string;
  attributes: Attributes;
  context: TraceContext;
  failures: string[];
  hasEnded: boolean;
};

/** Records the spans of this process instead of sending them, until `stop`. */
export function recordSpans(): { spans: RecordedSpan[]; stop(): void } {
  const spans: RecordedSpan[] = [];
  setTracer({
    start(name, { attributes = {}, ...options }) {
      const given = options.parent?.traceparent.split("-")[1];
      const traceId = given ?? randomBytes(16).toString("hex");
      const context = { traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-01` };
      const span = { ...options, name, attributes, context, failures: [], hasEnded: false };
      const recorded: RecordedSpan = span;
      spans.push(recorded);
      return {
        traceId,
        context,
        setAttributes: (more) => {
          recorded.attributes = { ...recorded.attributes, ...more };
        },
        fail: (errorType) => void recorded.failures.push(errorType),
        end: () => {
          recorded.hasEnded = true;
        },
      };
    },
    stop: async () => undefined,
  });
  return { spans, stop: () => setTracer(undefined) };
}

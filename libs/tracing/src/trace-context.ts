/** The position of a span in its trace, as the headers of W3C Trace Context. */
export type TraceContext = { traceparent: string; tracestate?: string };

/**
 * Version, trace id, id of the span, and flags. Ids of zeros are invalid. Later versions may append members; version 00
 * has none, and ff does not exist.
 */
const traceparentFormat =
  /^(?!ff|00-.{53})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
const maxTraceparentLength = 256;

/** At most 32 members `key=value`, separated by commas. */
const tracestateFormat =
  /^(?:[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,256}(?:,[ \t]*(?!$)|$)){1,32}$/;
const maxTracestateLength = 512;

const sampledFlag = 1;

type ParsedTraceparent = { traceId: string; spanId: string; flags: number };

export function parseTraceparent(text: unknown): ParsedTraceparent | undefined {
  if (typeof text !== "string" || text.length > maxTraceparentLength) return undefined;
  const [, traceId, spanId, flags = ""] = traceparentFormat.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & sampledFlag };
}

export function formatTraceparent({ traceId, spanId, flags }: ParsedTraceparent): string {
  return `00-${traceId}-${spanId}-0${flags & sampledFlag}`;
}

/**
 * Reads the headers of a request or of a message, which any client can write. Returns undefined without a valid
 * `traceparent`. An invalid `tracestate` is left out.
 */
export function parseTraceContext(
  traceparent: unknown,
  tracestate?: unknown,
): TraceContext | undefined {
  const parsed = parseTraceparent(traceparent);
  if (parsed === undefined) return undefined;
  const context = { traceparent: formatTraceparent(parsed) };
  const hasState =
    typeof tracestate === "string" &&
    tracestate.length <= maxTracestateLength &&
    tracestateFormat.test(tracestate);
  return hasState ? { ...context, tracestate } : context;
}

import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import type { LogLevel } from "./shared-variables.ts";

export type { Logger } from "pino";

/** Headers that tell who a caller or its user is. They are hidden where headers are logged. */
const secretHeaders = new Set([
  "authorization",
  "x-api-key",
  "cookie",
  "x-user-context",
  "x-user-id",
  "x-user-email",
  "x-user-attributes",
]);

/** How many causes of an error are logged; a chain may be a ring. */
const deepestLoggedCause = 5;

export type LoggerOptions = {
  service: string;
  level: LogLevel;
  /** Standard output unless given. */
  destination?: DestinationStream;
};

/**
 * A logger that writes JSON lines to standard output, at once, so that nothing is lost when the
 * process dies. Whatever is logged, no query string, no body and no credential gets out.
 */
export function createLogger(options: LoggerOptions): Logger {
  const settings = {
    level: options.level,
    base: { service: options.service },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    // Serializers instead of pino's redaction by path: searching each line for headers below any
    // field would cost more than the rest of the line.
    serializers: {
      err: describeError,
      error: describeError,
      req: describeRequest,
      request: describeRequest,
      headers: withoutSecrets,
    },
  };
  // Without `sync`, lines written just before the end would come out of order, or not at all.
  return pino(settings, options.destination ?? pino.destination({ dest: 1, sync: true }));
}

type DescribedError = {
  type: string;
  message: string;
  stack?: string | undefined;
  code?: unknown;
  cause?: DescribedError;
};

/** Only what every error has: further properties may hold parameters of queries or bodies. */
function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) };
  const described: DescribedError = {
    type: error.name,
    message: error.message,
    stack: error.stack,
  };
  if ("code" in error) described.code = error.code;
  if (error.cause !== undefined && depth < deepestLoggedCause)
    described.cause = describeError(error.cause, depth + 1);
  return described;
}

function withoutSecrets(headers: Record<string, unknown>): Record<string, unknown> {
  const shown = Object.entries(headers).map(([name, value]) => [
    name,
    secretHeaders.has(name.toLowerCase()) ? "[hidden]" : value,
  ]);
  return Object.fromEntries(shown);
}

function describeRequest(request: { id?: unknown; method?: string; url?: string }) {
  return { id: request.id, method: request.method, path: pathOf(request.url ?? "") };
}

/** The longest path that is logged; a longer one is noise, or an attack on the log. */
const longestLoggedPath = 500;

/** The path of a request target, without its query string. */
export function pathOf(url: string): string {
  const end = url.indexOf("?");
  return (end === -1 ? url : url.slice(0, end)).slice(0, longestLoggedPath);
}

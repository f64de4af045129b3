import type { LogLevel } from "@halyard/configuration";
import { maskKeys, pathOf } from "@halyard/http";
import { isTracing, traceFields } from "@halyard/tracing";
import { type DestinationStream, type LogFn, type Logger, pino, stdTimeFunctions } from "pino";
import { describeError } from "./describe-error.ts";

export type { Logger } from "pino";

/** Headers that identify a caller or its user. Logs contain them without their values. */
const secretHeaders = new Set([
  "authorization",
  "x-api-key",
  "cookie",
  "x-user-context",
  "x-user-id",
  "x-user-email",
  "x-user-attributes",
]);

const errorSerializers = {
  err: (error: unknown) => describeError(error),
  error: (error: unknown) => describeError(error),
};

type LoggerOptions = {
  service: string;
  level: LogLevel;
  /** Standard output by default. */
  destination?: DestinationStream;
};

/**
 * Creates a logger that writes JSON lines to standard output synchronously, so that no line is lost when the process
 * ends. It writes no query strings, no credentials, and messages only of errors that declare them as safe. API keys are
 * masked in the whole line, because clients put them in paths and request ids too.
 */
export function createLogger(options: LoggerOptions): Logger {
  const settings = {
    level: options.level,
    base: { service: options.service },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: withDescribedErrors },
    hooks: { logMethod: logWithMessage, streamWrite: maskKeys },
    ...(isTracing() && { mixin: () => traceFields() }),
    // Serializers are used instead of pino's redaction by path, because searching each line for headers below any field
    // would cost more than the rest of the line.
    serializers: {
      ...errorSerializers,
      req: describeRequest,
      request: describeRequest,
      headers: withoutSecrets,
    },
  };
  // Without `sync`, lines written just before the end could be reordered or lost.
  return pino(settings, options.destination ?? pino.destination({ dest: 1, sync: true }));
}

/** Describes errors under names other than `err` and `error`. Otherwise pino would write all of their members. */
function withDescribedErrors(line: Record<string, unknown>): Record<string, unknown> {
  let described: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(line)) {
    if (name in errorSerializers || !(value instanceof Error)) continue;
    described ??= { ...line };
    described[name] = describeError(value);
  }
  return described ?? line;
}

/** Adds a message to a line with an error. Otherwise pino would use the message of the error. */
function logWithMessage(this: Logger, line: Parameters<LogFn>, log: LogFn): void {
  const [first, ...rest] = line as unknown[];
  const error = first instanceof Error ? { err: first } : first;
  if (rest.length > 0 || typeof error !== "object") log.apply(this, [error, ...rest] as never);
  else log.apply(this, [error, "error"] as never);
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

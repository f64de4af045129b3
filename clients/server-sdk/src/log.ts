import type { HalyardError } from "./halyard-error.ts";

/** A logger of the application, such as pino's or winston's behind an adapter. Messages contain no context or key. */
export type Logger = {
  info(message: string, details?: Readonly<Record<string, unknown>>): void;
  warn(message: string, details?: Readonly<Record<string, unknown>>): void;
  error(message: string, details?: Readonly<Record<string, unknown>>): void;
};

type Level = keyof Logger;

/** The log of one client. A logger that throws is ignored. */
export type Log = {
  write(level: Level, message: string, details?: Readonly<Record<string, unknown>>): void;
  /** Writes a message unless one of the same kind was written within the last hour. */
  once(
    level: Level,
    kind: string,
    message: string,
    details?: Readonly<Record<string, unknown>>,
  ): void;
};

/** Time after a message during which others of its kind are dropped. A one-day outage writes at most 24 lines of each kind. */
const silenceMs = 3_600_000;

/** Without a logger, warnings and errors go to the console. */
export const consoleLogger: Logger = {
  info: () => undefined,
  warn: (message) => console.warn(message),
  error: (message) => console.error(message),
};

export function createLog(logger: Logger, monotonicMs: () => number): Log {
  const writtenAtMs = new Map<string, number>();

  function write(level: Level, message: string, details?: Readonly<Record<string, unknown>>): void {
    try {
      if (details === undefined) logger[level](`Halyard: ${message}`);
      else logger[level](`Halyard: ${message}`, details);
    } catch {
      // The application's logger failed. There is no other place to report to.
    }
  }

  return {
    write,
    once(level, kind, message, details) {
      const lastMs = writtenAtMs.get(kind);
      if (lastMs !== undefined && monotonicMs() - lastMs < silenceMs) return;
      writtenAtMs.set(kind, monotonicMs());
      write(level, message, details);
    },
  };
}

/** Errors with one code and different messages have different causes, and each is logged. */
export function logError(log: Log, error: HalyardError): void {
  log.once(error.fatal ? "error" : "warn", `${error.code}: ${error.message}`, error.message, {
    code: error.code,
  });
}

import type { Logger } from "pino";

const windowMs = 10_000;
/** More than a person reads, and at most about a gigabyte a day for each kind. */
const linesPerWindow = 100;

type Fields = Readonly<Record<string, unknown>>;

/** The log of requests. */
export type RequestLog = {
  info(line: Fields & { status: number }, message: string): void;
};

/** The log of failures that end requests. */
export type FailureLog = Record<"error" | "warn", (line: Fields, message: string) => void>;

const monotonicClock = () => performance.now();

/** Bounds the lines about error responses, by status. */
export function limitErrorLines(
  logger: Pick<Logger, "info">,
  monotonicMs: () => number = monotonicClock,
): RequestLog {
  const limited = limitLines<number>(monotonicMs);
  return {
    info(line, message) {
      if (line.status < lowestErrorStatus) logger.info(line, message);
      else limited(line.status, line, (bounded) => logger.info(bounded, message));
    },
  };
}

/** Bounds the lines about failures, by message. They have stacks, and an outage makes every request fail. */
export function limitFailureLines(
  logger: Pick<Logger, "error" | "warn">,
  monotonicMs: () => number = monotonicClock,
): FailureLog {
  const limited = limitLines<string>(monotonicMs);
  return {
    error: (line, message) => limited(message, line, (bounded) => logger.error(bounded, message)),
    warn: (line, message) => limited(message, line, (bounded) => logger.warn(bounded, message)),
  };
}

/**
 * Bounds the lines of each kind, so that a misbehaving client or an outage cannot fill the disk: 100 in ten seconds. The
 * next line of that kind after these has the number of lines that were left out, as `unlogged`.
 */
function limitLines<Kind>(
  monotonicMs: () => number,
): (kind: Kind, line: Fields, write: (line: Fields) => void) => void {
  const windows = new Map<Kind, { endsAtMs: number; lines: number; unlogged: number }>();
  return (kind, line, write) => {
    const nowMs = monotonicMs();
    const window = windows.get(kind);
    if (window !== undefined && nowMs < window.endsAtMs) {
      if (window.lines === linesPerWindow) window.unlogged += 1;
      else {
        window.lines += 1;
        write(line);
      }
      return;
    }
    const { unlogged = 0 } = window ?? {};
    windows.set(kind, { endsAtMs: nowMs + windowMs, lines: 1, unlogged: 0 });
    write(unlogged === 0 ? line : { ...line, unlogged });
  };
}

export const lowestErrorStatus = 400;

import type { Logger } from "pino";

const windowMs = 10_000;
/** More than a person reads, and at most about a gigabyte a day for each status. */
const linesPerWindow = 100;

/** The log of requests. */
export type RequestLog = {
  info(line: Readonly<Record<string, unknown>> & { status: number }, message: string): void;
};

/**
 * Bounds the lines about error responses, by status, so that a misbehaving client cannot fill the disk: 100 in ten
 * seconds. The next line of that status after these has the number of lines that were left out, as `unlogged`.
 */
export function limitErrorLines(
  logger: Pick<Logger, "info">,
  monotonicMs: () => number = () => performance.now(),
): RequestLog {
  const windows = new Map<number, { endsAtMs: number; lines: number; unlogged: number }>();
  return {
    info(line, message) {
      if (line.status < lowestErrorStatus) return logger.info(line, message);
      const nowMs = monotonicMs();
      const window = windows.get(line.status);
      if (window !== undefined && nowMs < window.endsAtMs) {
        if (window.lines === linesPerWindow) window.unlogged += 1;
        else {
          window.lines += 1;
          logger.info(line, message);
        }
        return;
      }
      const { unlogged = 0 } = window ?? {};
      windows.set(line.status, { endsAtMs: nowMs + windowMs, lines: 1, unlogged: 0 });
      logger.info(unlogged === 0 ? line : { ...line, unlogged }, message);
    },
  };
}

export const lowestErrorStatus = 400;

import type { Logger } from "@halyard/service";

/**
 * Writes the first of several equal warnings, and counts the others. At the end of each interval, one line has their
 * number. Otherwise a flood of failing requests would become a flood of log lines.
 */
export type RepeatedLog = (
  details: Record<string, unknown> & { cause: string },
  message: string,
) => void;

const intervalMs = 10_000;

export function createRepeatedLog(logger: Logger): RepeatedLog {
  const repeats = new Map<string, number>();
  return (details, message) => {
    const key = JSON.stringify([message, details.cause]);
    const count = repeats.get(key);
    if (count !== undefined) {
      repeats.set(key, count + 1);
      return;
    }
    repeats.set(key, 0);
    logger.warn(details, message);
    const report = () => {
      const repeated = repeats.get(key) ?? 0;
      repeats.delete(key);
      if (repeated > 0) logger.warn({ cause: details.cause, repeated }, message);
    };
    setTimeout(report, intervalMs).unref();
  };
}

import type { Logger } from "@halyard/service";

/**
 * Writes the first of many equal warnings, and then counts them: one line with their number follows at the end of each
 * interval. Without it, a flood of failing requests becomes a flood of log lines.
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

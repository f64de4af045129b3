import { type EvaluationsReported, parseInstant, type UsageReport } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";

/** An application may report the time since its last report, which can have been a day ago after an outage. */
const maxPeriodMs = 24 * 60 * 60 * 1_000;
/** Maximum time by which an application's clock may be ahead. */
const maxAheadMs = 5 * 60 * 1_000;

const endsBeforeStart = createProblem(
  "VALIDATION_001",
  "/period/end must not be before /period/start.",
);
const tooLong = createProblem("VALIDATION_001", "/period must be at most 24 hours.");
const inFuture = createProblem(
  "VALIDATION_001",
  "/period/end must not be in the future: check the clock.",
);

/**
 * Returns the message for a report that matches its schema, or the problem of its period. Flag keys become the ids of
 * the environment's flags. Unknown keys, and flags without evaluations, are left out.
 */
export function decideReport(
  { period, flags }: UsageReport,
  context: {
    reportId: string;
    environmentId: string;
    /** Returns the id of the flag with a key; undefined for an unknown key. */
    flagIdOf: (key: string) => string | undefined;
    nowMs: number;
  },
): EvaluationsReported | Problem {
  const startMs = millisecondsOf(period.start);
  const endMs = millisecondsOf(period.end);
  if (endMs < startMs) return endsBeforeStart;
  if (endMs - startMs > maxPeriodMs) return tooLong;
  if (endMs - context.nowMs > maxAheadMs) return inFuture;
  return {
    report_id: context.reportId,
    environment_id: context.environmentId,
    // Otherwise an application whose clock is ahead would report into the next hour.
    evaluated_at: new Date(Math.min(endMs, context.nowMs)).toISOString(),
    flags: Object.entries(flags).flatMap(([key, counts]) => {
      const flagId = context.flagIdOf(key);
      const { true: on = 0, false: off = 0 } = counts;
      return flagId === undefined || on + off === 0
        ? []
        : [{ flag_id: flagId, true: on, false: off }];
    }),
  };
}

/** Parses a time. The schema has checked the format. */
function millisecondsOf(text: string): number {
  return parseInstant(text) ?? Number.NaN;
}

import {
  type EvaluationsReported,
  type FlagEntry,
  parseInstant,
  type UsageReport,
} from "@halyard/contracts";
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

type ReportedFlag = Pick<FlagEntry, "flag_id" | "variations">;

/**
 * Returns the message for a report that matches its schema, or the problem of its period. Flag keys become the ids of
 * the environment's flags. Unknown keys of flags and variations, and flags without evaluations, are left out.
 */
export function decideReport(
  { period, flags, sdk }: UsageReport,
  context: {
    reportId: string;
    environmentId: string;
    /** Returns the flag with a key; undefined for an unknown key. */
    find: (key: string) => ReportedFlag | undefined;
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
      const flag = context.find(key);
      return flag === undefined ? [] : countsOf(flag, counts);
    }),
    ...(sdk === undefined ? {} : { reader: { ...sdk, knows: [...new Set(sdk.knows)].sort() } }),
  };
}

/** Returns the counts of a flag in the message: none if there are no evaluations. */
function countsOf(
  flag: ReportedFlag,
  { true: on = 0, false: off = 0, variations = {} }: UsageReport["flags"][string],
): EvaluationsReported["flags"] {
  const counted = Object.entries(variations).filter(
    ([key, evaluations]) => evaluations > 0 && flag.variations?.some((each) => each.key === key),
  );
  if (on + off === 0 && counted.length === 0) return [];
  const byVariation = counted.length === 0 ? {} : { variations: Object.fromEntries(counted) };
  return [{ flag_id: flag.flag_id, true: on, false: off, ...byVariation }];
}

/** Parses a time. The schema has checked the format. */
function millisecondsOf(text: string): number {
  return parseInstant(text) ?? Number.NaN;
}

import { type CalendarDateTime, toCalendarDateTime, toZoned } from "@internationalized/date";
import { fieldMessageOf } from "../api/problem.ts";

/** Which of two equal local times is meant, when clocks go back. */
export type Occurrence = "first" | "second";

/**
 * A local time as an instant. `skipped`: clocks go forward over it, so it does not exist and the time after the gap is
 * used. `twice`: clocks go back, so it exists twice.
 */
export type ResolvedTime = { instant: Date; kind: "usual" | "skipped" | "twice" };

/** Finds the instant of a time on the clocks of a zone. */
export function resolveLocal(
  local: CalendarDateTime,
  zone: string,
  occurrence: Occurrence,
): ResolvedTime {
  const first = toZoned(local, zone, "earlier");
  const second = toZoned(local, zone, "later");
  if (first.compare(second) === 0) return { instant: first.toDate(), kind: "usual" };
  // In a gap, neither of the two shows the time that was entered.
  if (toCalendarDateTime(first).compare(local) !== 0)
    return { instant: second.toDate(), kind: "skipped" };
  return { instant: (occurrence === "first" ? first : second).toDate(), kind: "twice" };
}

export type TimeProblems = { enable?: string; disable?: string };

/** Returns what the API would reject about the times. The server checks them again, by its own clock. */
export function findProblems(
  { enableAt, disableAt }: { enableAt: Date | null; disableAt: Date | null },
  now: Date,
): TimeProblems {
  const problems: TimeProblems = {};
  const past = "This time has passed. Choose one in the future.";
  if (enableAt !== null && enableAt <= now) problems.enable = past;
  if (disableAt !== null && disableAt <= now) problems.disable = past;
  if (enableAt !== null && enableAt.getTime() === disableAt?.getTime())
    problems.disable ??= "The flag would turn on and off at the same time. Choose another time.";
  return problems;
}

/** Assigns an error of the API to the time that it names. */
export function problemsIn(error: unknown): TimeProblems {
  const { path, text } = fieldMessageOf(error) ?? {};
  if (path?.[0] === "enable_at") return { enable: `This time ${text}` };
  if (path?.[0] === "disable_at") return { disable: `This time ${text}` };
  return {};
}

import type { Clock } from "./clock.ts";
import type { Activity } from "./connection.ts";
import type { Received } from "./edge.ts";
import type { Outcome } from "./next-step.ts";
import { type HalyardError, problemOf } from "./problem.ts";
import type { Source, UserValues } from "./user-values.ts";
import { createWaiters } from "./waiters.ts";

export type Status = {
  source: Source;
  /** True while an edge can be reached and has sent or confirmed the values. The edge itself may lack a change. */
  current: boolean;
  /** `idle`: not connected. `paused`: the page is hidden. `stopped`: after a fatal error. */
  connection: "idle" | "paused" | Activity;
  /** Time in milliseconds since 1970 at which the edge last sent or confirmed values. */
  lastUpdateAt: number | undefined;
};

/** Applies the events of a connection to the status and the values, and notifies listeners and waiting callers. */
type StatusTracker = {
  status: Omit<Status, "source">;
  /** Resolves with true when the values are current; with false after the time, or when the client has stopped. */
  wait(timeoutMs: number): Promise<boolean>;
  onValues(received: Received | undefined): void;
  onOutcome(outcome: Outcome, stopped: boolean): void;
  onActivity(activity: Activity): void;
  onPaused(): void;
};

export function createStatusTracker(given: {
  baseUrl: string;
  clock: Clock;
  values: UserValues;
  /** Returns the context of the current user. */
  user: () => string;
  report: (problem: HalyardError) => void;
  onFreshness: (event: "current" | "stale") => void;
}): StatusTracker {
  const { clock, values, user, report, onFreshness } = given;
  const waiters = createWaiters(clock);
  const status: StatusTracker["status"] = {
    current: false,
    connection: "idle",
    lastUpdateAt: undefined,
  };

  function becomeStale(): void {
    if (!status.current) return;
    status.current = false;
    onFreshness("stale");
  }

  return {
    status,
    wait: async (timeoutMs) =>
      status.current || (status.connection !== "stopped" && waiters.wait(timeoutMs)),
    onValues(received) {
      const receiver = user();
      const wasCurrent = status.current;
      status.current = true;
      status.lastUpdateAt = clock.now();
      values.receive(received, status.connection === "polling" ? "poll" : "stream");
      // A listener may have switched the user.
      if (wasCurrent || receiver !== user()) return;
      waiters.settle(true);
      onFreshness("current");
    },
    onOutcome(outcome, stopped) {
      if (stopped) {
        status.connection = "stopped";
        waiters.settle(false);
      }
      // A rejected stream does not mean stale values: a poll follows immediately.
      if (stopped || (outcome.kind === "failed" && (outcome.by === "poll" || outcome.status === 0)))
        becomeStale();
      const problem = problemOf(outcome, given.baseUrl);
      if (problem) report(problem);
    },
    onActivity(activity) {
      status.connection = activity;
    },
    onPaused() {
      status.connection = "paused";
      becomeStale();
    },
  };
}

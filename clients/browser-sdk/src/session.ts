import type { Clock } from "./clock.ts";
import { type Activity, openConnection } from "./connection.ts";
import { readContext } from "./context.ts";
import { createEdge, type Values } from "./edge.ts";
import type { Outcome } from "./next-step.ts";
import { keyIdOf, type ReadOptions } from "./options.ts";
import type { Page } from "./page.ts";
import { createPageConnection } from "./page-connection.ts";
import { HalyardError, problemOf } from "./problem.ts";
import { hashOf } from "./stored-values.ts";
import type { Source, UserValues } from "./values.ts";
import { createWaiters } from "./waiters.ts";

export type Status = {
  source: Source;
  /** True while the values are known to be current. */
  current: boolean;
  /** `idle`: not connected. `paused`: the page is hidden. `stopped`: after a fatal error. */
  connection: "idle" | "paused" | Activity;
  /** Time in milliseconds since 1970 at which the edge last sent or confirmed values. */
  lastUpdateAt: number | undefined;
};

/** The current user, and the connection that keeps the user's values current. */
export type Session = {
  status(): Status;
  /** Connects unless the session is connected. */
  connect(): void;
  /** Resolves with true when the values are current; with false after the time, or when the client has stopped. */
  wait(timeoutMs: number): Promise<boolean>;
  switchTo(context: unknown, timeoutMs: number): Promise<boolean>;
  close(): void;
};

export function createSession(given: {
  options: ReadOptions;
  page: Page | undefined;
  clock: Clock;
  values: UserValues;
  report: (problem: HalyardError) => void;
  onFreshness: (event: "current" | "stale") => void;
}): Session {
  const { options, page, clock, values, report, onFreshness } = given;
  const { baseUrl, clientKey } = options;
  const waiters = createWaiters(clock);
  let contextJson = contextOf(options.context, report);
  let activity: Status["connection"] = "idle";
  let isCurrent = false;
  let lastUpdateAt: number | undefined;

  function useStoredValues(bootstrap?: ReadOptions["bootstrap"]): void {
    values.switchTo(hashOf(`${baseUrl} ${keyIdOf(clientKey)} ${contextJson}`), bootstrap);
  }

  function onValues(received: Values | undefined): void {
    const user = contextJson;
    const wasCurrent = isCurrent;
    isCurrent = true;
    lastUpdateAt = clock.now();
    values.receive(received, activity === "polling" ? "poll" : "stream");
    // A listener may have switched the user.
    if (wasCurrent || user !== contextJson) return;
    waiters.settle(true);
    onFreshness("current");
  }

  function becomeStale(): void {
    if (!isCurrent) return;
    isCurrent = false;
    onFreshness("stale");
  }

  function onOutcome(outcome: Outcome, stopped: boolean): void {
    if (stopped) {
      connection.close();
      activity = "stopped";
      waiters.settle(false);
    }
    // A rejected stream does not mean stale values: a poll follows immediately.
    if (stopped || (outcome.kind === "failed" && (outcome.by === "poll" || outcome.status === 0)))
      becomeStale();
    const problem = problemOf(outcome, baseUrl);
    if (problem !== undefined) report(problem);
  }

  const connection = createPageConnection({
    page,
    clock,
    start: () =>
      openConnection({
        edge: createEdge({ ...options, contextJson, clock }),
        clock,
        tag: () => values.tag,
        onValues,
        onOutcome,
        onActivity(next) {
          activity = next;
        },
      }),
    onPaused() {
      activity = "paused";
      becomeStale();
    },
  });

  async function wait(timeoutMs: number): Promise<boolean> {
    return isCurrent || (activity !== "stopped" && waiters.wait(timeoutMs));
  }

  useStoredValues(options.bootstrap);
  return {
    status: () => ({
      source: values.source,
      current: isCurrent,
      connection: activity,
      lastUpdateAt,
    }),
    connect() {
      if (options.problem !== undefined) activity = "stopped";
      else if (!connection.isOpen()) connection.open();
    },
    wait,
    async switchTo(context, timeoutMs) {
      const json = contextOf(context, report);
      if (json !== contextJson) {
        contextJson = json;
        isCurrent = false;
        useStoredValues();
        if (connection.isOpen()) connection.open();
      }
      const isReady = connection.isOpen() && (await wait(timeoutMs));
      if (json !== contextJson) return false;
      if (!isReady) values.dropEarlier();
      return isReady;
    },
    close() {
      // Callers of `wait` keep waiting, because strict mode of React closes and connects again.
      connection.close();
      isCurrent = false;
      activity = "idle";
    },
  };
}

/** Returns the valid attributes of a context as JSON. */
function contextOf(context: unknown, report: (problem: HalyardError) => void): string {
  const { json, hasInvalid } = readContext(context);
  if (hasInvalid) report(new HalyardError("context", "Invalid attributes are ignored."));
  return json;
}

import type { Clock } from "./clock.ts";
import { openConnection } from "./connection.ts";
import { readContext } from "./context.ts";
import { createEdge } from "./edge.ts";
import { keyIdOf, type ReadOptions } from "./options.ts";
import type { Page } from "./page.ts";
import { createPageConnection } from "./page-connection.ts";
import { HalyardError } from "./problem.ts";
import { createStatusTracker, type Status } from "./status.ts";
import { hashOf } from "./stored-values.ts";
import type { UserValues } from "./user-values.ts";

/** The current user, and the connection that keeps the user's values current. */
type Session = {
  status(): Status;
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
  const { options, page, clock, values, report } = given;
  const { baseUrl, clientKey } = options;
  let contextJson = contextOf(options.context, report);
  const tracker = createStatusTracker({ ...given, baseUrl, user: () => contextJson });
  const { status, wait } = tracker;

  function useStoredValues(bootstrap?: ReadOptions["bootstrap"]): void {
    values.switchTo(hashOf(`${baseUrl} ${keyIdOf(clientKey)} ${contextJson}`), bootstrap);
  }

  const connection = createPageConnection({
    ...tracker,
    page,
    clock,
    start: () =>
      openConnection({
        ...tracker,
        edge: createEdge({ ...options, contextJson, clock }),
        clock,
        tag: () => values.tag,
        onOutcome(outcome, stopped) {
          if (stopped) connection.close();
          tracker.onOutcome(outcome, stopped);
        },
      }),
  });

  useStoredValues(options.bootstrap);
  return {
    status: () => ({ source: values.source, ...status }),
    connect() {
      if (options.problem !== undefined) status.connection = "stopped";
      else if (!connection.isOpen()) connection.open();
    },
    wait,
    async switchTo(context, timeoutMs) {
      const json = contextOf(context, report);
      if (json !== contextJson) {
        contextJson = json;
        status.current = false;
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
      status.current = false;
      status.connection = "idle";
    },
  };
}

/** Returns the valid attributes of a context as JSON. */
function contextOf(context: unknown, report: (problem: HalyardError) => void): string {
  const { json, hasInvalid } = readContext(context);
  if (hasInvalid) report(new HalyardError("context", "Invalid attributes are ignored."));
  return json;
}

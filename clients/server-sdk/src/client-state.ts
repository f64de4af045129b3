import type { Client, ConnectionState, Status } from "./client.ts";
import type { ConnectionEvents } from "./connection/connection.ts";
import { createFreshness } from "./freshness.ts";
import { createListeners } from "./listeners.ts";
import { maxWaitMs } from "./lists/wait-limit.ts";
import { type Log, logError } from "./log.ts";
import type { Clock } from "./platform.ts";
import { createReadiness, type Readiness } from "./readiness.ts";
import type { RuleSet } from "./rules/rule-set.ts";

/** The observable state of a client: status, readiness and events. */
type ClientState = ConnectionEvents &
  Pick<Client, "ready" | "on" | "off" | "status"> & {
    /** Sets the time of flags from a cache file. */
    storedAt(time: Date | undefined): void;
    /** Chunks of lists arrived, or flags no longer wait for them. `changed` are the keys of flags that changed. */
    listsChanged(changed: readonly string[]): void;
    close(): void;
  };

type ClientStateOptions = { ruleSet: RuleSet; clock: Clock; log: Log; pollIntervalMs: number };

const defaultReadyTimeoutMs = 5_000;

export function createClientState(options: ClientStateOptions): ClientState {
  const { ruleSet, clock, log, pollIntervalMs } = options;
  const readiness = createReadiness(clock);
  const listeners = createListeners((event, cause) =>
    log.once("warn", "listener", `A listener of "${event}" threw an exception.`, { cause }),
  );
  let connection: ConnectionState = "connecting";
  let lastUpdateAt: Date | undefined;
  let isConfirmed = false;
  const freshness = createFreshness({
    ...{ clock, pollIntervalMs },
    onCurrent: () => listeners.emit("current", { source: ruleSet.source }),
    onStale: () => listeners.emit("stale", { lastUpdateAt }),
  });

  function setConnection(next: ConnectionState): void {
    if (connection === "closed" || connection === next) return;
    connection = next;
    log.write("info", `The client is ${next.replace("_", " ")}.`);
  }

  return {
    confirmed(source, changed) {
      lastUpdateAt = new Date(clock.wallMs());
      setConnection(source === "stream" ? "streaming" : "polling");
      isConfirmed = true;
      settleIfReady(readiness, ruleSet);
      freshness.confirmed(source);
      if (changed.length > 0) listeners.emit("change", { keys: changed, source });
    },
    lost() {
      setConnection("connecting");
      freshness.lost();
    },
    failed(error) {
      if (error.fatal) {
        setConnection(error.code === "invalid_options" ? "invalid_options" : "stopped");
        freshness.lost();
        readiness.settle(false);
      }
      logError(log, error);
      // Deferred, so that an application can add listeners to a client that it has just created.
      queueMicrotask(() => listeners.emit("error", error));
    },
    listsChanged(changed) {
      if (isConfirmed) settleIfReady(readiness, ruleSet);
      if (changed.length > 0) listeners.emit("change", { keys: changed, source: ruleSet.source });
    },
    storedAt(time) {
      lastUpdateAt = time;
    },
    ready: (given) => readiness.wait(readTimeout(given)),
    on: listeners.on,
    off: listeners.off,
    get status(): Status {
      return { source: ruleSet.source, current: freshness.isCurrent, lastUpdateAt, connection };
    },
    close() {
      setConnection("closed");
      freshness.stop();
      readiness.settle(false);
      listeners.clear();
    },
  };
}

/**
 * Confirmed flags are ready when each one that waited for a list has it or was given up. Lists that change meanwhile do not
 * prolong this.
 */
function settleIfReady(readiness: Readiness, { isUnsettled }: RuleSet): void {
  if (isUnsettled) readiness.settleWithin(maxWaitMs);
  else readiness.settle(true);
}

/** Plain JavaScript can pass anything. */
function readTimeout(options: { timeoutMs?: unknown } | null | undefined): number {
  const timeoutMs = options?.timeoutMs;
  return typeof timeoutMs === "number" && timeoutMs >= 0 ? timeoutMs : defaultReadyTimeoutMs;
}

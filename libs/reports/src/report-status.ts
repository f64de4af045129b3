import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type ProcessStatus, processStatuses, type ServiceName } from "@halyard/contracts";
import { type FollowerState, watchConnection } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";

/** Every package of the repository has the version of the release. */
const { version } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { version: string };

/**
 * Reports on core NATS the release of this process and the state of its followers, until the connection is closed. The
 * followers are sampled at every report, so `stale_seconds` may lack the time of one interval.
 */
export function reportStatus(connection: NatsConnection, service: ServiceName): void {
  const watch = watchConnection(connection);
  const id = randomUUID();
  const started_at = new Date(performance.timeOrigin).toISOString();
  const currentAtMs = new WeakMap<FollowerState, number>();

  function stateOf(follower: FollowerState): ProcessStatus["followers"][number] {
    const nowMs = performance.now();
    const { stream } = follower;
    if (follower.isCurrent()) {
      currentAtMs.set(follower, nowMs);
      return { stream, state: "current", stale_seconds: 0 };
    }
    const lastMs = currentAtMs.get(follower);
    if (lastMs === undefined) return { stream, state: "starting", stale_seconds: 0 };
    return { stream, state: "stale", stale_seconds: Math.floor((nowMs - lastMs) / 1_000) };
  }

  function report(): void {
    const followers = [...watch.followers].map(stateOf);
    const status: ProcessStatus = { id, version, started_at, followers };
    if (watch.isConnected())
      connection.publish(processStatuses.subjectOf(service), JSON.stringify(status));
  }

  report();
  const repeating = setInterval(report, processStatuses.intervalMs).unref();
  void connection.closed().then(() => clearInterval(repeating));
}

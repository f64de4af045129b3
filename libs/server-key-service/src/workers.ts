import {
  followDirectory,
  type KeyDirectory,
  type KeySignatures,
  type LastUsed,
  sendLastUsed,
} from "@halyard/api-keys";
import type { ServiceName } from "@halyard/contracts";
import { apiTimeoutMs, connectNats, type NatsServers, trackProblem } from "@halyard/jetstream";
import { followPeople, type PeopleDirectory } from "@halyard/people";
import { identifyDatabase, isOutage, type Sql } from "@halyard/postgres";
import { reportStatus } from "@halyard/reports";
import { onceConnected } from "@halyard/service";
import type { Deletions, FollowedSnapshot, SnapshotPart } from "@halyard/snapshot";
import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { type SweepOptions, startSweep } from "./sweep.ts";

/**
 * The background workers that need NATS. Those of every service keep the API keys and the other parts of the snapshot
 * up to date, remove the rows of deleted scopes, and send the last use of keys. They start when NATS is available.
 */
export type Workers = {
  /** Returns whether the snapshot and the people have been read completely at least once. */
  isLoaded(): boolean;
  details(): { nats: "connected" | "away"; nats_problem?: string | undefined };
  stop(): Promise<void>;
};

export type WorkerOptions = {
  nats: NatsServers;
  sql: Sql;
  keys: KeyDirectory;
  people: PeopleDirectory;
  places: SnapshotPart;
  signatures: KeySignatures;
  deletions: Deletions;
  /** The clock of the sweep, and the interval of its checks. */
  sweep: { nowMs: () => number; intervalMs?: number };
  lastUsed: LastUsed;
  metrics: Registry;
  logger: Logger;
};

export function startWorkers(
  options: WorkerOptions & {
    service: ServiceName;
    /** Filter of the snapshot's keys. By default, the entries of API keys, environments and projects. */
    filter?: string;
    /** Called when the snapshot is up to date, at the start and after every interruption. */
    onCurrent?: () => void;
    /** Removes what the service stores about deleted scopes. */
    remove: SweepOptions["remove"];
    /** Starts the service's own workers. They stop before the shared ones, in reverse order. */
    begin: (connection: NatsConnection, client: JetStreamClient) => OwnWorkers;
  },
): Workers & Pick<FollowedSnapshot, "isCurrent"> {
  const loaded = { keys: false, people: false };
  let followed: FollowedSnapshot | undefined;
  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: options.service, onProblem });
  const working = onceConnected(connecting, async (connection) => {
    reportStatus(connection, options.service);
    const client = jetstream(connection, { timeout: apiTimeoutMs });
    const { parts, stops } = options.begin(connection, client);
    followed = followDirectory({
      ...{ ...options, connection, parts: [options.deletions, options.places, ...parts] },
      onCurrent() {
        loaded.keys = true;
        options.onCurrent?.();
      },
    });
    const people = followPeople({
      ...{ ...options, connection, directory: options.people },
      onCurrent() {
        loaded.people = true;
      },
    });
    const sweeping = startSweep({
      ...{ ...options, ...options.sweep, isOutage },
      settledRevision: followed.settledRevision,
      identifyDatabase: () => identifyDatabase(options.sql),
    });
    const sending = sendLastUsed({ ...options, client, monotonicMs: () => performance.now() });
    return [sending.stop, followed.stop, people.stop, sweeping.stop, ...stops];
  });
  const isCurrent = () => followed?.isCurrent() ?? false;
  return {
    isLoaded: () => loaded.keys && loaded.people,
    isCurrent,
    details: () => ({ nats: isCurrent() ? "connected" : "away", nats_problem: problem() }),
    stop: working.stop,
  };
}

type OwnWorkers = {
  /** Parts of the snapshot that the service uses in addition to the API keys and the deletions. */
  parts: readonly SnapshotPart[];
  stops: readonly (() => Promise<void>)[];
};

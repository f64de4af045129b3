import {
  type EntrySigner,
  followDirectory,
  type KeyDirectory,
  type KeySignatures,
  type LastUsed,
  sendLastUsed,
} from "@halyard/api-keys";
import {
  apiTimeoutMs,
  type Consumption,
  connectNats,
  createDeadLetterReader,
  createQueueMetrics,
  keepStreams,
  type NatsServers,
  type SignMessage,
  trackProblem,
  type VerifyMessage,
} from "@halyard/jetstream";
import { followPeople, type PeopleDirectory } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import { type FollowedReports, reportStatus } from "@halyard/reports";
import { onceConnected } from "@halyard/service";
import type { FollowedSnapshot, SnapshotPart } from "@halyard/snapshot";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { v4 as uuidv4 } from "uuid";
import { consumeAudit } from "./audit/consume-audit.ts";
import { startApplying } from "./change-requests/apply-due.ts";
import { startMarkingStale } from "./change-requests/mark-stale.ts";
import { createAwaitPeople } from "./outbox/await-people.ts";
import {
  createEffectMetrics,
  createEffects,
  createPublications,
  type Effects,
} from "./outbox/effects.ts";
import { createLiveEdges, followEdges } from "./outbox/live-edges.ts";
import { createLeaderNotifier, listenForNotifications } from "./outbox/notifications.ts";
import { createWriter } from "./outbox/write.ts";
import type { GroupSettings } from "./people/group-grants.ts";
import { createLease } from "./publishing/lease.ts";
import { createRelayMetrics, type Relay, startRelay } from "./publishing/relay.ts";
import {
  createKnownProcesses,
  followProcesses,
  type KnownProcesses,
} from "./status/known-processes.ts";
import { createPropagation } from "./status/propagation.ts";
import { createReadStatus, type ReadStatus } from "./status/read-status.ts";
import type { Plans } from "./tenancy/plans.ts";
import { startCleanUp } from "./upkeep/clean-up.ts";
import { consumeDueChanges } from "./upkeep/due-consumer.ts";
import { consumeLastSeen } from "./upkeep/last-seen.ts";

/**
 * The background workers of this process, which all need NATS: the relay, the key directory, and the consumers of
 * queues. They start when NATS is available. Until then, management still accepts changes.
 */
export type Workers = {
  wakeRelay: () => void;
  directoryIsCurrent: () => boolean;
  peopleAreCurrent: () => boolean;
  /** Makes writes wait until this process has the entries about people. */
  awaitPeople: ReturnType<typeof createAwaitPeople>;
  /** Makes writes wait until they are in effect. */
  effects: Effects;
  readStatus: ReadStatus;
  details: () => {
    nats: "connected" | "away";
    nats_problem?: string | undefined;
    relay: "leading" | "following";
    due_changes: "consumed" | "left";
  };
  stop: () => Promise<void>;
};

type WorkerOptions = GroupSettings & {
  nats: NatsServers;
  replicas: number;
  flagEventsMaxBytes?: number;
  /** Id of this process in the lease of the relay. */
  holder: string;
  sql: Sql;
  /** Called when this process or another one may have written something. */
  onWritten: () => void;
  directory: KeyDirectory;
  people: PeopleDirectory;
  /** The places of projects and environments, which follow the snapshot as the keys do. */
  places: SnapshotPart;
  /** Signs the entries of API keys. If undefined, they are not signed. */
  signer: EntrySigner | undefined;
  /** Verifies the entries of API keys that the relay finds in the snapshot. */
  signatures: KeySignatures;
  sign: SignMessage;
  verify: VerifyMessage;
  lastUsed: LastUsed;
  plans: Plans;
  now: () => Date;
  newId: () => string;
  metrics: Registry;
  logger: Logger;
};

export function startWorkers(options: WorkerOptions): Workers {
  let workers: ConnectedWorkers | undefined;
  const isConnected = () => workers?.edges.isConnected() ?? false;
  const composed = composeEffects({ ...options, isConnected });
  const processes = createKnownProcesses();
  const notifyLeader = createLeaderNotifier(options.sql, options.logger);
  const wakeRelay = () => {
    options.onWritten();
    if (workers?.relay.isLeading()) workers.relay.wake();
    else notifyLeader();
  };
  const peopleAreCurrent = () => workers?.people.isCurrent() ?? false;
  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "management", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    reportStatus(connection, "management");
    const given = { ...composed, processes, wakeRelay, connection };
    workers = await startConnectedWorkers({ ...options, ...given });
    return workers.stops;
  });
  return {
    wakeRelay,
    directoryIsCurrent: () => workers?.keys.isCurrent() ?? false,
    peopleAreCurrent,
    awaitPeople: createAwaitPeople(options.people, peopleAreCurrent),
    effects: composed.effects,
    readStatus: createReadStatus({
      isConnected,
      processes,
      propagation: composed.propagation,
      readDeadLetters: () => workers?.readDeadLetters(),
      logger: options.logger,
    }),
    details: () => ({
      nats: isConnected() ? "connected" : "away",
      nats_problem: problem(),
      relay: workers?.relay.isLeading() ? "leading" : "following",
      due_changes: workers?.dueChanges.isRunning() ? "consumed" : "left",
    }),
    stop: working.stop,
  };
}

/** The running workers. They start with the first connection to NATS and survive its interruptions. */
type ConnectedWorkers = {
  relay: Relay;
  keys: FollowedSnapshot;
  people: ReturnType<typeof followPeople>;
  dueChanges: Consumption;
  edges: FollowedReports;
  readDeadLetters: ReturnType<typeof createDeadLetterReader>;
  /** Functions that stop the workers, called from the last to the first. */
  stops: readonly (() => Promise<void>)[];
};

async function startConnectedWorkers(
  options: WorkerOptions &
    ReturnType<typeof composeEffects> & {
      processes: KnownProcesses;
      connection: NatsConnection;
      wakeRelay: () => void;
    },
): Promise<ConnectedWorkers> {
  const { connection, sql, logger, publications, effects } = options;
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  const withBroker = { ...options, client: jetstream(connection), manager };
  const edges = followEdges({
    ...{ connection, logger },
    edges: options.edges,
    onLoss: effects.interrupt,
  });
  const processes = followProcesses(connection, options.processes, logger);
  const readDeadLetters = createDeadLetterReader(withBroker);
  const monotonicMs = () => performance.now();
  const relay = startRelay({
    ...{ ...options, broker: withBroker, newEpoch: uuidv4 },
    lease: createLease({ sql, name: "relay", holder: options.holder, monotonicMs }),
    metrics: createRelayMetrics(options.metrics),
  });
  const keys = followDirectory({
    ...{ connection, keys: options.directory, logger },
    parts: [options.places],
  });
  const people = followPeople({ ...options, directory: options.people });
  const metrics = createQueueMetrics(options.metrics);
  const dueChanges = consumeDueChanges({ ...options, broker: withBroker, metrics });
  // Its writes have no effects that a request waits for.
  const writer = createWriter({ sql, newId: options.newId, wakeRelay: options.wakeRelay });
  const others = [
    consumeLastSeen({ ...withBroker, metrics, writer }),
    consumeAudit({ ...withBroker, metrics }),
    sendLastUsed({ ...withBroker, monotonicMs }),
    keepStreams(withBroker),
    startCleanUp({ sql, broker: withBroker, isLeading: relay.isLeading }),
    startApplying({ ...options, writer, isLeading: relay.isLeading }),
    startMarkingStale({ ...options, writer, isLeading: relay.isLeading }),
  ];
  const ending = new AbortController();
  const listening = listenForNotifications(sql, {
    onWritten() {
      options.onWritten();
      relay.wake();
    },
    onPublished({ rowIds, revision }) {
      options.onWritten();
      if (revision !== undefined) publications.confirm(rowIds, revision);
    },
    ...{ signal: ending.signal, logger },
  });
  const stops = [
    async () => edges.stop(),
    async () => processes.stop(),
    async () => {
      ending.abort();
      await listening;
    },
    ...[relay.stop, keys.stop, people.stop],
    // These stop before the relay, which still publishes what they write.
    async () => void (await Promise.all([dueChanges, ...others].map((each) => each.stop()))),
  ];
  return { relay, keys, people, dueChanges, edges, readDeadLetters, stops };
}

function composeEffects(options: {
  directory: KeyDirectory;
  metrics: Registry;
  isConnected: () => boolean;
  now: () => Date;
}) {
  const edges = createLiveEdges();
  const propagation = createPropagation();
  const publications = createPublications(edges.published);
  const effects = createEffects({
    publications,
    edges,
    isConnected: options.isConnected,
    isInEffect: (message) => {
      if (message.stream !== "snapshot") return true;
      const { address, value } = message;
      if (address.kind === "environment" && "deleted" in value)
        return options.directory.hasEnded(address.environmentId);
      if (address.kind !== "key") return true;
      return (options.directory.versionOf(address.keyId) ?? 0) >= value.version;
    },
    onIncomplete: createEffectMetrics(options.metrics, edges),
    onWaited({ durationMs, isInEffect }) {
      if (edges.count() === 0) return;
      const committedAt = new Date(options.now().getTime() - durationMs);
      propagation.record({ committedAt, appliedMs: isInEffect ? durationMs : null });
    },
  });
  return { publications, edges, effects, propagation };
}

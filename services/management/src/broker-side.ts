import {
  type EntrySigner,
  followDirectory,
  type KeyDirectory,
  type KeySignatures,
  type LastUsed,
  tellLastUsed,
} from "@halyard/api-keys";
import {
  apiTimeoutMs,
  type Consumption,
  connectNats,
  createQueueMetrics,
  type FollowedSnapshot,
  keepStreams,
  type NatsServers,
  trackProblem,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { onceConnected } from "@halyard/service";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { v4 as uuidv4 } from "uuid";
import { consumeAudit } from "./audit/consume-audit.ts";
import { type FollowedEdges, followEdges } from "./edges/follow-edges.ts";
import { createLiveEdges } from "./edges/live-edges.ts";
import type { Plans } from "./organizations/organization.ts";
import { createEffectMetrics, createEffects, type Effects } from "./outbox/effects.ts";
import { createLeaderHint, listenForHints } from "./outbox/hints.ts";
import { createPublications } from "./outbox/publications.ts";
import { createLease } from "./relay/lease.ts";
import { createRelayMetrics, type Relay, startRelay } from "./relay/relay.ts";
import { startCleanUp } from "./retention/clean-up.ts";
import { consumeDueChanges } from "./schedule/due-consumer.ts";
import { consumeLastSeen } from "./usage/last-seen.ts";

/**
 * Everything of this process that needs NATS: the relay, the key directory that follows the snapshot,
 * the changes that come due, and when keys and flags were last seen. It comes up when NATS does; until
 * then management takes changes all the same.
 */
export type BrokerSide = {
  wakeRelay: () => void;
  directoryIsCurrent: () => boolean;
  /** Lets writes wait until they are in effect. */
  effects: Effects;
  details: () => {
    nats: "connected" | "away";
    nats_problem?: string | undefined;
    relay: "leading" | "following";
    due_changes: "consumed" | "left";
  };
  stop: () => Promise<void>;
};

type BrokerSideOptions = {
  nats: NatsServers;
  replicas: number;
  flagEventsMaxBytes?: number;
  /** Who this process is, in the relay's lease. */
  holder: string;
  sql: Sql;
  directory: KeyDirectory;
  /** Signs the entries of API keys; undefined: they are not signed. */
  signer: EntrySigner | undefined;
  /** Verifies the entries of API keys that the relay finds in the snapshot. */
  signatures: KeySignatures;
  lastUsed: LastUsed;
  plans: Plans;
  now: () => Date;
  newId: () => string;
  metrics: Registry;
  logger: Logger;
};

export function startBrokerSide(options: BrokerSideOptions): BrokerSide {
  let workers: Workers | undefined;
  const isConnected = () => workers?.edges.isConnected() ?? false;
  const composed = composeEffects({ ...options, isConnected });
  const hintLeader = createLeaderHint(options.sql, options.logger);
  const wakeRelay = () => (workers?.relay.isLeading() ? workers.relay.wake() : hintLeader());
  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "management", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    workers = await startWorkers({ ...options, ...composed, wakeRelay, connection });
    return workers.releases;
  });
  return {
    wakeRelay,
    directoryIsCurrent: () => workers?.keys.isCurrent() ?? false,
    effects: composed.effects,
    details: () => ({
      nats: isConnected() ? "connected" : "away",
      nats_problem: problem(),
      relay: workers?.relay.isLeading() ? "leading" : "following",
      due_changes: workers?.dueChanges.isRunning() ? "consumed" : "left",
    }),
    stop: working.stop,
  };
}

/** The background workers. They start with the first connection to NATS and outlast its interruptions. */
type Workers = {
  relay: Relay;
  keys: FollowedSnapshot;
  dueChanges: Consumption;
  edges: FollowedEdges;
  /** Stop the workers, called from the last to the first. */
  releases: readonly (() => Promise<void>)[];
};

async function startWorkers(
  options: BrokerSideOptions &
    ReturnType<typeof composeEffects> & { connection: NatsConnection; wakeRelay: () => void },
): Promise<Workers> {
  const { connection, sql, logger, publications, effects } = options;
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  const broker = { ...options, client: jetstream(connection), manager };
  const edges = followEdges({
    ...{ connection, logger },
    edges: options.edges,
    onLoss: effects.interrupt,
  });
  const monotonicMs = () => performance.now();
  const relay = startRelay({
    ...{ ...options, broker, newEpoch: uuidv4 },
    lease: createLease({ sql, name: "relay", holder: options.holder, monotonicMs }),
    metrics: createRelayMetrics(options.metrics),
  });
  const keys = followDirectory({ connection, keys: options.directory, logger });
  const metrics = createQueueMetrics(options.metrics);
  const dueChanges = consumeDueChanges({ ...options, broker, metrics });
  const others = [
    consumeLastSeen({ ...broker, metrics }),
    consumeAudit({ ...broker, metrics }),
    tellLastUsed({ ...broker, monotonicMs }),
    keepStreams(broker),
    startCleanUp({ sql, broker, isLeading: relay.isLeading }),
  ];
  const ending = new AbortController();
  const listening = listenForHints(sql, {
    onWritten: relay.wake,
    onPublished: ({ rowIds, revision }) => publications.confirm(rowIds, revision),
    signal: ending.signal,
  });
  const releases = [
    async () => edges.stop(),
    async () => {
      ending.abort();
      await listening;
    },
    ...[relay.stop, keys.stop],
    // The relay still carries what these write.
    async () => void (await Promise.all([dueChanges, ...others].map((each) => each.stop()))),
  ];
  return { relay, keys, dueChanges, edges, releases };
}

function composeEffects(options: {
  directory: KeyDirectory;
  metrics: Registry;
  isConnected: () => boolean;
}) {
  const edges = createLiveEdges();
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
  });
  return { publications, edges, effects };
}

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
  watchConnection,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { onceConnected } from "@halyard/service";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
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

export function startBrokerSide(options: {
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
}): BrokerSide {
  const { sql, logger, directory } = options;
  let running: Running | undefined;
  const { publications, edges, effects } = composeEffects({
    ...options,
    isConnected: () => running?.edges.isConnected() ?? false,
  });
  const hintLeader = createLeaderHint(sql, logger);
  const wakeRelay = () => (running?.relay.isLeading() ? running.relay.wake() : hintLeader());
  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "management", onProblem });
  let isConnected = () => false;
  const working = onceConnected(connecting, async (connection) => {
    isConnected = watchConnection(connection).isConnected;
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    const broker = { ...options, connection, client: jetstream(connection), manager };
    const followedEdges = followEdges({ connection, edges, onLoss: effects.interrupt, logger });
    const relay = startRelay({
      ...{ ...options, publications, broker, newEpoch: uuidv4 },
      lease: createLease({
        ...{ sql, name: "relay", holder: options.holder },
        monotonicMs: () => performance.now(),
      }),
      metrics: createRelayMetrics(options.metrics),
    });
    const keys = followDirectory({ connection, keys: directory, logger });
    const metrics = createQueueMetrics(options.metrics);
    const dueChanges = consumeDueChanges({ ...options, broker, wakeRelay, metrics });
    running = { relay, keys, dueChanges, edges: followedEdges };
    const others = [
      consumeLastSeen({ ...broker, metrics }),
      consumeAudit({ ...broker, metrics }),
      tellLastUsed({ ...broker, monotonicMs: () => performance.now() }),
      keepStreams(broker),
      startCleanUp({ sql, broker, isLeading: relay.isLeading }),
    ];
    const ending = new AbortController();
    const listening = listenForHints(sql, {
      onWritten: relay.wake,
      onPublished: ({ rowIds, revision }) => publications.confirm(rowIds, revision),
      signal: ending.signal,
    });
    return [
      async () => followedEdges.stop(),
      async () => {
        ending.abort();
        await listening;
      },
      ...[relay.stop, keys.stop],
      // The relay still carries what these write.
      async () => void (await Promise.all([dueChanges, ...others].map((each) => each.stop()))),
    ];
  });
  return {
    wakeRelay,
    directoryIsCurrent: () => running?.keys.isCurrent() ?? false,
    effects,
    details: () => ({
      nats: isConnected() ? "connected" : "away",
      nats_problem: problem(),
      relay: running?.relay.isLeading() ? "leading" : "following",
      due_changes: running?.dueChanges.isRunning() ? "consumed" : "left",
    }),
    stop: working.stop,
  };
}

/** The parts of the broker side that others ask, once NATS is connected. */
type Running = {
  relay: Relay;
  keys: FollowedSnapshot;
  dueChanges: Consumption;
  edges: FollowedEdges;
};

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

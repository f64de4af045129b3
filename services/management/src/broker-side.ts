import {
  type EntrySigner,
  followDirectory,
  type KeyDirectory,
  type KeySignatures,
  type LastUsed,
  tellLastUsed,
} from "@halyard/api-keys";
import type { PlanLimits } from "@halyard/contracts";
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
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { v4 as uuidv4 } from "uuid";
import { consumeAudit } from "./audit/consume-audit.ts";
import { type FollowedEdges, followEdges } from "./edges/follow-edges.ts";
import { createLiveEdges } from "./edges/live-edges.ts";
import { createEffectMetrics } from "./outbox/effect-metrics.ts";
import { createEffects, type Effects } from "./outbox/effects.ts";
import { createLeaderHint, listenForHints } from "./outbox/hints.ts";
import { createPublications, type Publications } from "./outbox/publications.ts";
import { createLease } from "./relay/lease.ts";
import { publishedChannel } from "./relay/outbox-rows.ts";
import { type Relay, startRelay } from "./relay/relay.ts";
import { createRelayMetrics } from "./relay/relay-metrics.ts";
import { startDueChanges } from "./schedule/start-due-changes.ts";
import { consumeLastSeen } from "./usage/consume-last-seen.ts";

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
  plans: Readonly<Record<string, PlanLimits>>;
  now: () => Date;
  newId: () => string;
  metrics: Registry;
  logger: Logger;
}): BrokerSide {
  const { sql, logger } = options;
  let followedEdges: FollowedEdges | undefined;
  const { publications, edges, effects } = composeEffects({
    ...options,
    isConnected: () => followedEdges?.isConnected() ?? false,
  });
  const hintLeader = createLeaderHint(sql, logger);
  const stopping = new AbortController();
  let connection: NatsConnection | undefined;
  const { problem, onProblem } = trackProblem();
  let relay: Relay | undefined;
  let followed: FollowedSnapshot | undefined;
  let dueChanges: Consumption | undefined;
  let stopWorking = async () => {};
  const isConnected = () => connection !== undefined && watchConnection(connection).isConnected();
  const wakeRelay = () => (relay?.isLeading() ? relay.wake() : hintLeader());

  async function start(): Promise<void> {
    connection = await connectNats({ ...options, name: "management", onProblem });
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    const client = jetstream(connection);
    const broker = { ...options, connection, client, manager };
    const streams = keepStreams(broker);
    followedEdges = followEdges({ connection, edges, onLoss: effects.interrupt, logger });
    relay = startRelay({
      ...options,
      publications,
      broker,
      lease: createLease({
        sql,
        name: "relay",
        holder: options.holder,
        monotonicMs: () => performance.now(),
      }),
      newEpoch: uuidv4,
      metrics: createRelayMetrics(options.metrics),
    });
    followed = followDirectory({ connection, keys: options.directory, logger });
    const queueMetrics = createQueueMetrics(options.metrics);
    dueChanges = startDueChanges({ ...options, broker, wakeRelay, queueMetrics });
    const queue = { ...broker, metrics: queueMetrics };
    const telling = tellLastUsed({
      ...broker,
      lastUsed: options.lastUsed,
      monotonicMs: () => performance.now(),
    });
    const working = [dueChanges, consumeLastSeen(queue), consumeAudit(queue), telling, streams];
    stopWorking = async () => {
      // First, because the relay still carries what is being made.
      await Promise.all(working.map((each) => each.stop()));
      await followed?.stop();
      await relay?.stop();
      followedEdges?.stop();
    };
    await listenForHints(sql, {
      publishedChannel,
      onWritten: relay.wake,
      onPublished: ({ rowIds, revision }) => publications.confirm(rowIds, revision),
      signal: stopping.signal,
      logger,
    });
  }

  const started = start().catch((error: unknown) => {
    logger.error({ err: error }, "the broker side did not start");
  });
  return {
    wakeRelay,
    directoryIsCurrent: () => followed?.isCurrent() ?? false,
    effects,
    details: () => ({
      nats: isConnected() ? "connected" : "away",
      nats_problem: problem(),
      relay: relay?.isLeading() ? "leading" : "following",
      due_changes: dueChanges?.isRunning() ? "consumed" : "left",
    }),
    stop: async () => {
      stopping.abort();
      if (connection === undefined) return;
      await started;
      await stopWorking();
      await connection.close();
    },
  };
}

function composeEffects(options: {
  directory: KeyDirectory;
  metrics: Registry;
  isConnected: () => boolean;
}) {
  const { confirm, expect } = createPublications();
  const edges = createLiveEdges();
  const publications: Publications = {
    expect,
    confirm(rowIds, revision) {
      if (revision !== undefined) edges.published(revision);
      confirm(rowIds, revision);
    },
  };
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

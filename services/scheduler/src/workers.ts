import { type KeyDirectory, type LastUsed, sendLastUsed } from "@halyard/api-keys";
import { startPublishingAudit } from "@halyard/audit-outbox";
import { scheduleStream } from "@halyard/contracts";
import {
  connectNats,
  consumeQueue,
  createQueueMetrics,
  type FollowedSnapshot,
  type NatsServers,
  trackProblem,
} from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { onceConnected, releaseAll } from "@halyard/service";
import { jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import {
  type FlagDirectory,
  followDirectory,
  type OnFlagsGone,
} from "./directory/flag-directory.ts";
import { type Dispatcher, startDispatcher } from "./dispatch/dispatcher.ts";
import {
  createScheduleMetrics,
  type ScheduleMetrics,
  watchOverdue,
} from "./dispatch/schedule-metrics.ts";
import { createSendDue } from "./dispatch/send-due.ts";
import { createSettleChanges } from "./dispatch/settle-changes.ts";
import {
  createSchedulesOfDeletedFlags,
  deleteSchedulesOfDeleted,
} from "./schedules/deleted-flags.ts";

/**
 * The background workers, which need NATS. They follow the keys and flags, send due changes, record their
 * outcomes, and publish the use of keys and audit entries. They start when the connection to NATS is established.
 */
export type Workers = {
  /** Returns whether the keys and flags have been read completely at least once. */
  flagsAreLoaded(): boolean;
  /** Called after a schedule was set. */
  onSet(scope: { flagId: string; environmentId: string }): void;
  details(): { nats: "connected" | "away"; nats_problem?: string | undefined };
  stop(): Promise<void>;
};

/** Share of the PostgreSQL connections for outcomes. The rest is for requests and claims. */
const shareOfConnections = 0.5;

type WorkerOptions = {
  nats: NatsServers;
  sql: Sql;
  keys: KeyDirectory;
  flags: FlagDirectory;
  lastUsed: LastUsed;
  /** Delays after an interruption at which all flags with a schedule are checked. */
  checkFlagsAfterMs?: readonly number[];
  metrics: Registry;
  logger: Logger;
};

export function startWorkers(options: WorkerOptions): Workers {
  const { sql, flags, logger } = options;
  let connected: Connected | undefined;
  let flagsAreLoaded = false;
  const scheduleMetrics = createScheduleMetrics(options.metrics);
  const isCurrent = () => connected?.followed.isCurrent() ?? false;
  const gone = createSchedulesOfDeletedFlags({
    sql,
    flags,
    directoryIsCurrent: isCurrent,
    snapshotIsSettled: async () => (await connected?.followed.isSettled()) ?? false,
    ...(options.checkFlagsAfterMs && { checkAfterMs: options.checkFlagsAfterMs }),
    logger,
  });
  const overdue = watchOverdue({ sql, metrics: scheduleMetrics, logger });
  const wakeDispatcher = () => connected?.dispatcher.wake();
  const onFlagsGone = {
    deleted: gone.deleted,
    current() {
      flagsAreLoaded = true;
      gone.current();
      // Changes that came due while NATS was unavailable can be sent now.
      wakeDispatcher();
    },
  };

  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "scheduler", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    const given = { connection, scheduleMetrics, onFlagsGone, onArmed: wakeDispatcher };
    connected = startConnected({ ...options, ...given });
    return connected.stop;
  });

  return {
    flagsAreLoaded: () => flagsAreLoaded,
    onSet(scope) {
      // The flag may have been deleted while its schedule was being written.
      if (flags.statusOf(scope) === "deleted") gone.deleted(scope);
      wakeDispatcher();
    },
    details: () => ({ nats: isCurrent() ? "connected" : "away", nats_problem: problem() }),
    stop: () => releaseAll([gone.stop, overdue.stop, working.stop]),
  };
}

type Connected = {
  followed: FollowedSnapshot;
  dispatcher: Dispatcher;
  stop: (() => Promise<void>)[];
};

/** Starts the workers that need an established connection. */
function startConnected(
  options: WorkerOptions & {
    connection: NatsConnection;
    scheduleMetrics: ScheduleMetrics;
    onFlagsGone: OnFlagsGone;
    /** Called after a waiting change was armed, because that change may already be due. */
    onArmed: () => void;
  },
): Connected {
  const { connection, sql, logger } = options;
  const client = jetstream(connection);
  const deletedEnvironments = deleteSchedulesOfDeleted({
    sql,
    settledRevision: () => followed.settledRevision(),
    logger,
  });
  const followed = followDirectory({ ...options, deletedEnvironments });
  const dispatcher = startDispatcher({
    ...options,
    canSend: followed.isCurrent,
    send: createSendDue({ client, logger }),
  });
  const answers = consumeQueue({
    connection,
    stream: scheduleStream.name,
    consumer: scheduleStream.resolved.consumer,
    subject: scheduleStream.resolved.subject,
    concurrency: Math.max(1, Math.floor(sql.maxConnections * shareOfConnections)),
    handle: createSettleChanges({ ...options, metrics: options.scheduleMetrics }),
    isOutage,
    metrics: createQueueMetrics(options.metrics),
    logger,
  });
  const lastUsedSender = sendLastUsed({ ...options, client, monotonicMs: () => performance.now() });
  const audit = startPublishingAudit({ sql, client, logger });
  const parts = [audit, lastUsedSender, followed, deletedEnvironments, answers, dispatcher];
  return { followed, dispatcher, stop: parts.map(({ stop }) => stop) };
}

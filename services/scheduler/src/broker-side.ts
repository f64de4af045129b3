import { type KeyDirectory, type LastUsed, tellLastUsed } from "@halyard/api-keys";
import { startPublishingAudit } from "@halyard/audit-outbox";
import { scheduleStream } from "@halyard/contracts";
import {
  apiTimeoutMs,
  connectNats,
  consumeQueue,
  createQueueMetrics,
  isBrokerAway,
  type NatsServers,
  trackProblem,
} from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { onceConnected, releaseAll } from "@halyard/service";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { FlagDirectory } from "./directory/flag-directory.ts";
import { followDirectory } from "./directory/follow-directory.ts";
import { type Dispatcher, startDispatcher } from "./dispatch/dispatcher.ts";
import { watchForLostMessages } from "./dispatch/lost-messages.ts";
import { readQueue } from "./dispatch/queue.ts";
import { createSendDue } from "./dispatch/send-due.ts";
import { createSettleChanges } from "./dispatch/settle-changes.ts";
import { watchOverdue } from "./dispatch/watch-overdue.ts";
import { createScheduleMetrics } from "./schedule-metrics.ts";
import { deleteSchedulesOfDeleted } from "./schedules/delete-schedules-of-deleted.ts";
import { createSchedulesOfDeletedFlags } from "./schedules/schedules-of-deleted-flags.ts";

/**
 * Everything of this process that needs NATS: what it knows of keys and flags, the sending of what is
 * due, the answers to it, and telling which keys were used. It comes up when NATS does.
 */
export type BrokerSide = {
  /** Whether keys and flags were read once. */
  knowsFlags(): boolean;
  /** A schedule was set. */
  onSet(place: { flagId: string; environmentId: string }): void;
  details(): { nats: "connected" | "away"; nats_problem?: string | undefined };
  stop(): Promise<void>;
};

/** How much of the connections to PostgreSQL answers take: requests and claims wait for some too. */
const shareOfConnections = 0.5;

export function startBrokerSide(options: {
  nats: NatsServers;
  sql: Sql;
  keys: KeyDirectory;
  flags: FlagDirectory;
  lastUsed: LastUsed;
  /** When every schedule's flag is looked at after a full read of the snapshot. */
  lookForFlagsAfterMs?: readonly number[];
  metrics: Registry;
  logger: Logger;
}): BrokerSide {
  const { sql, flags, logger } = options;
  const gone = createSchedulesOfDeletedFlags({
    sql,
    flags,
    directoryIsCurrent: () => isCurrent(),
    snapshotIsSettled: () => isSettled(),
    ...(options.lookForFlagsAfterMs && { lookAfterMs: options.lookForFlagsAfterMs }),
    logger,
  });
  const scheduleMetrics = createScheduleMetrics(options.metrics);
  const overdue = watchOverdue({ sql, metrics: scheduleMetrics, logger });
  let dispatcher: Dispatcher | undefined;
  let knowsFlags = false;
  let isCurrent = () => false;
  let isSettled = async () => false;
  let settledRevision: () => Promise<number | undefined> = async () => undefined;

  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "scheduler", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    const client = jetstream(connection);
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    const deletedEnvironments = deleteSchedulesOfDeleted({
      sql,
      settledRevision: () => settledRevision(),
      logger,
    });
    const followed = followDirectory({
      ...options,
      connection,
      deletedEnvironments,
      onFlagsGone: {
        deleted: gone.deleted,
        current() {
          knowsFlags = true;
          gone.current();
          // What came due while NATS was away can be sent now.
          dispatcher?.wake();
        },
      },
    });
    isCurrent = followed.isCurrent;
    isSettled = followed.isSettled;
    settledRevision = followed.settledRevision;
    const sending = { sql, canSend: isCurrent, send: createSendDue({ client, logger }), logger };
    dispatcher = startDispatcher(sending);
    const lost = watchForLostMessages({
      ...sending,
      readQueue: () => readQueue(manager),
      isBrokerAway,
    });
    const answers = consumeQueue({
      connection,
      stream: scheduleStream.name,
      consumer: scheduleStream.resolved.consumer,
      subject: scheduleStream.resolved.subject,
      concurrency: Math.max(1, Math.floor(sql.maxConnections * shareOfConnections)),
      handle: createSettleChanges({
        sql,
        metrics: scheduleMetrics,
        onArmed: () => dispatcher?.wake(),
        logger,
      }),
      isOutage,
      metrics: createQueueMetrics(options.metrics),
      logger,
    });
    const telling = tellLastUsed({ ...options, client, monotonicMs: () => performance.now() });
    const audit = startPublishingAudit({ sql, client, logger });
    return [
      ...[audit.stop, telling.stop, followed.stop, deletedEnvironments.stop],
      ...[answers.stop, lost.stop, dispatcher.stop],
    ];
  });

  return {
    knowsFlags: () => knowsFlags,
    onSet(place) {
      // The flag may have been deleted while its schedule was being written.
      if (flags.standing(place) === "deleted") gone.deleted(place);
      dispatcher?.wake();
    },
    details: () => ({ nats: isCurrent() ? "connected" : "away", nats_problem: problem() }),
    stop: () => releaseAll([gone.stop, overdue.stop, working.stop]),
  };
}

import { startPublishingAudit } from "@halyard/audit-outbox";
import { everythingFilter, scheduleStream } from "@halyard/contracts";
import {
  consumeQueue,
  createQueueMetrics,
  type SignMessage,
  type VerifyMessage,
} from "@halyard/jetstream";
import { isOutage } from "@halyard/postgres";
import {
  startWorkers as startSnapshotWorkers,
  type WorkerOptions,
  type Workers,
} from "@halyard/server-key-service";
import { releaseAll } from "@halyard/service";
import { type FlagDirectory, partOfFlags } from "./directory/flag-directory.ts";
import { type Dispatcher, startDispatcher } from "./dispatch/dispatcher.ts";
import { createScheduleMetrics, watchOverdue } from "./dispatch/schedule-metrics.ts";
import { createSendDue } from "./dispatch/send-due.ts";
import { createSettleChanges } from "./dispatch/settle-changes.ts";
import { createCancelOnDeletion, createRemove } from "./schedules/deleted-schedules.ts";

/** Outcomes in progress. One statement records all that have arrived, on one connection. */
const outcomesAtATime = 200;

/**
 * Starts the background workers, which need NATS. They follow the keys and flags, send due changes, record their
 * outcomes, and publish the use of keys and audit entries.
 */
export function startWorkers(
  options: WorkerOptions & { flags: FlagDirectory; sign: SignMessage; verify: VerifyMessage },
): Workers & {
  /** Called after a schedule was set. */
  onSet(scope: { flagId: string; environmentId: string }): void;
} {
  const { sql, flags, sign, verify, logger } = options;
  const metrics = createScheduleMetrics(options.metrics);
  const cancelling = createCancelOnDeletion({ sql, logger });
  let dispatcher: Dispatcher | undefined;
  const workers = startSnapshotWorkers({
    ...options,
    service: "scheduler",
    filter: everythingFilter,
    onCurrent() {
      // Changes that came due while NATS was unavailable can be sent now.
      dispatcher?.wake();
    },
    remove: createRemove(sql, options.deletions),
    begin(connection, client) {
      const send = createSendDue({ client, sign, logger });
      dispatcher = startDispatcher({ ...options, canSend: workers.isCurrent, send });
      const { name: stream, resolved } = scheduleStream;
      const outcomes = consumeQueue({
        ...{ connection, stream, ...resolved, verify, isOutage, logger },
        concurrency: outcomesAtATime,
        handle: createSettleChanges({ ...options, metrics, onArmed: dispatcher.wake }),
        metrics: createQueueMetrics(options.metrics),
      });
      const audit = startPublishingAudit({ sql, client, sign, logger });
      return {
        parts: [partOfFlags(flags, cancelling.deleted)],
        stops: [audit, outcomes, dispatcher].map(({ stop }) => stop),
      };
    },
  });
  const overdue = watchOverdue({ sql, metrics, logger });
  return {
    ...workers,
    onSet(scope) {
      // The flag may have been deleted while its schedule was being written.
      if (flags.statusOf(scope) === "deleted") cancelling.deleted(scope);
      dispatcher?.wake();
    },
    stop: () => releaseAll([cancelling.stop, overdue.stop, workers.stop]),
  };
}

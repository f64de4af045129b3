import { type ScheduleAction, type ScheduleDue, scheduleStream } from "@halyard/contracts";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import type { ScheduleScope } from "../schedules/schedule.ts";

/** A change whose time has come, with all that management needs to make it. */
export type DueChange = ScheduleScope & {
  id: string;
  scheduleId: string;
  action: ScheduleAction;
  dueAt: Date;
  /** On whose behalf it is made. */
  userId: string;
};

/** What management is told. */
function dueMessage(change: DueChange): ScheduleDue {
  return {
    id: change.id,
    schedule_id: change.scheduleId,
    organization_id: change.organizationId,
    project_id: change.projectId,
    flag_id: change.flagId,
    environment_id: change.environmentId,
    action: change.action,
    due_at: change.dueAt.toISOString(),
    user_id: change.userId,
  };
}

/** The broker answers in milliseconds; after this time it counts as away and the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

/**
 * Puts due changes into the queue to management, all at once. One that could not be put there, or of
 * which that is not known, stays marked as sent and is found as a lost message.
 *
 * The broker drops a second message of an id for two minutes, also when it has lost the first. So what
 * is sent `again` has none: management knows by the change's own id what it has made.
 */
export type SendDue = (changes: readonly DueChange[], how?: { again: boolean }) => Promise<void>;

export function createSendDue(options: { client: JetStreamClient; logger: Logger }): SendDue {
  return async (changes, { again } = { again: false }) => {
    const outcomes = await Promise.allSettled(
      changes.map((change) =>
        options.client.publish(scheduleStream.due.subject, JSON.stringify(dueMessage(change)), {
          ...(again ? {} : { msgID: change.id }),
          timeout: acknowledgementTimeoutMs,
          retries: 0,
        }),
      ),
    );
    const failed = outcomes.filter((outcome) => outcome.status === "rejected");
    const [first] = failed;
    if (first === undefined) return;
    options.logger.warn(
      { err: first.reason, changes: failed.length },
      "due changes were not taken by NATS; they are sent again",
    );
  };
}

import { type ScheduleAction, type ScheduleDue, scheduleStream } from "@halyard/contracts";
import { publishSigned, type SignMessage } from "@halyard/jetstream";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import type { ScheduleScope } from "../schedules/schedule.ts";

/** A due change with all the data that management needs to make it. */
export type DueChange = ScheduleScope & {
  id: string;
  scheduleId: string;
  action: ScheduleAction;
  dueAt: Date;
  /** The user on whose behalf the change is made. */
  userId: string;
};

/** Returns the message to management for a due change. */
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

/**
 * Publishes due changes to management concurrently. A change whose publication failed, or has an unknown outcome, is
 * claimed again later. Messages have no message id, because the broker would drop a repetition for two minutes, even
 * after it has lost the first message. Management detects repetitions by the id of the change.
 */
export type SendDue = (changes: readonly DueChange[]) => Promise<void>;

export function createSendDue({
  client,
  sign,
  logger,
}: {
  client: JetStreamClient;
  sign: SignMessage;
  logger: Logger;
}): SendDue {
  return async (changes) => {
    const outcomes = await Promise.allSettled(
      changes.map((change) =>
        publishSigned(client, sign, {
          subject: scheduleStream.due.subject,
          payload: JSON.stringify(dueMessage(change)),
        }),
      ),
    );
    const failed = outcomes.filter((outcome) => outcome.status === "rejected");
    const [first] = failed;
    if (first === undefined) return;
    logger.warn(
      { err: first.reason, changes: failed.length },
      "NATS did not acknowledge due changes; they are sent again",
    );
  };
}

import { scheduleStream } from "@halyard/contracts";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { type DueChange, dueMessage } from "./due-change.ts";

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

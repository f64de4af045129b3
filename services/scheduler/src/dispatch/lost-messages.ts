import { scheduleStream } from "@halyard/contracts";
import { isOutage, type Sql } from "@halyard/postgres";
import { periodically } from "@halyard/service";
import type { Logger } from "pino";
import { listSent } from "./dispatch-store.ts";
import type { SendDue } from "./send-due.ts";

/**
 * Finds changes that are marked as sent while nobody works on them: the process died before it had
 * sent them, or the broker lost the message, or the answer. A change counts as lost when it was under
 * way at two looks in a row while the queue between scheduler and management, which holds a message
 * until its effect is recorded, was empty. It is sent again, with the same id: management knows what
 * it has applied, and answers again. No clock has a part in this.
 */
const lookEveryMs = 2_000;
const pageSize = 1_000;

export function watchForLostMessages(options: {
  sql: Sql;
  canSend: () => boolean;
  /** How many messages the queue holds, in either direction. */
  countQueued: () => Promise<number>;
  send: SendDue;
  isBrokerAway: (error: unknown) => boolean;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, logger } = options;
  let underWayBefore: ReadonlySet<string> = new Set();

  async function look(): Promise<void> {
    if (!options.canSend()) return;
    // In this order: what is still under way after the queue was empty is in no queue.
    const queued = await options.countQueued();
    const underWay = await listSent(sql, pageSize);
    const lost = queued > 0 ? [] : underWay.filter(({ id }) => underWayBefore.has(id));
    underWayBefore = new Set(underWay.map(({ id }) => id));
    if (lost.length === 0) return;
    logger.warn(
      { changes: lost.length, stream: scheduleStream.name },
      "lost messages are sent again",
    );
    await options.send(lost, { again: true });
  }

  return periodically(lookEveryMs, look, {
    isExpected: (error) => isOutage(error) || options.isBrokerAway(error),
    onFailure: (err) => logger.warn({ err }, "not looking for lost messages now"),
  });
}

import { scheduleStream } from "@halyard/contracts";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { listSent } from "./dispatch-store.ts";
import { findLostChanges, type Queue, type Watched } from "./lost-changes.ts";
import type { SendDue } from "./send-due.ts";

/**
 * Finds changes that are marked as sent while nobody works on them: the process died before it had
 * sent them, or the broker lost the message, or the answer. A change counts as lost when it is still
 * under way after all has left the queue that was there when it was. It is sent again, with the same id:
 * management knows what it has applied, and answers again. No clock has a part in this.
 */
const lookEveryMs = 2_000;
const pageSize = 1_000;

export function watchForLostMessages(options: {
  sql: Sql;
  canSend: () => boolean;
  readQueue: () => Promise<Queue>;
  send: SendDue;
  isBrokerAway: (error: unknown) => boolean;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, logger } = options;
  let watched: Watched = new Map();

  async function look(): Promise<void> {
    if (!options.canSend()) return;
    // In this order: what was settled in between is in neither.
    const queue = await options.readQueue();
    const found = findLostChanges(await listSent(sql, pageSize), queue, watched);
    const { lost } = found;
    watched = found.watched;
    if (lost.length === 0) return;
    logger.warn(
      { changes: lost.length, stream: scheduleStream.name },
      "lost messages are sent again",
    );
    await options.send(lost, { again: true });
  }

  return startInterval(look, {
    everyMs: lookEveryMs,
    isExpected: (error) => isOutage(error) || options.isBrokerAway(error),
    onFailure: (err) => logger.warn({ err }, "not looking for lost messages now"),
  });
}

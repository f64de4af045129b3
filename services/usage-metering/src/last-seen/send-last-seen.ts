import type { UsageLastSeen } from "@halyard/contracts";
import { isBrokerUnavailable } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { publishLastSeen } from "@halyard/reports";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { lockSending, markSent, readUnsent, type UnsentKind } from "./last-seen-store.ts";

const pollIntervalMs = 1_000;
/** Number of polls between those that also send later uses. */
const pollsUntilLater = 5;
/** Maximum number of rows from each table in a message: about 250 KB in all. */
const maxRowsPerTable = 1_000;

/**
 * Sends the times of the last use of keys and flags to management. A first use is sent within a second, because a user
 * may be waiting for it. Later uses are sent every few seconds.
 *
 * While management does not read, unsent rows stay in the table. A row is marked as sent after NATS has acknowledged
 * it. If the process dies between the two, it is sent again, which is harmless because the latest time wins.
 */
export function sendLastSeen(options: {
  sql: Sql;
  client: JetStreamClient;
  /** Returns whether NATS is available. */
  canSend: () => boolean;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, client, canSend, logger } = options;
  let polls = 0;
  let isPostponed = false;

  async function send(signal: AbortSignal): Promise<void> {
    polls += 1;
    const kinds: UnsentKind[] = polls % pollsUntilLater === 0 ? ["first", "later"] : ["first"];
    while (!signal.aborted && canSend() && (await sendBatch(kinds)) === "more");
  }

  async function sendBatch(
    kinds: readonly UnsentKind[],
  ): Promise<"all sent" | "more" | "postponed"> {
    return sql.begin(async (tx) => {
      if (!(await lockSending(tx))) return "all sent";
      const unsent = await readUnsent(tx, { kinds, atMost: maxRowsPerTable });
      const most = largestPart(unsent);
      if (most === 0) return "all sent";
      if ((await publishLastSeen(client, unsent)) === "too many wait") return postpone();
      isPostponed = false;
      await markSent(tx, unsent);
      return most === maxRowsPerTable ? "more" : "all sent";
    });
  }

  /** Logs the first postponement of a series. The next attempt is a second later. */
  function postpone(): "postponed" {
    if (!isPostponed) logger.warn("management is behind; the times of last use are sent later");
    isPostponed = true;
    return "postponed";
  }

  return startInterval(send, {
    intervalMs: pollIntervalMs,
    isExpected: (error) => isOutage(error) || isBrokerUnavailable(error),
    onFailure: (err) => logger.warn({ err }, "the times of last use could not be sent"),
  });
}

function largestPart({ keys, environments, flags }: UsageLastSeen): number {
  return Math.max(keys.length, environments.length, flags.length);
}

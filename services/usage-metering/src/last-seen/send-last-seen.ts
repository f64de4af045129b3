import type { UsageLastSeen } from "@halyard/contracts";
import { isBrokerUnavailable, publishLastSeen } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { lockSending, markSent, readUnsent, type UnsentKind } from "./last-seen-store.ts";

/**
 * Tells management when keys were last used and flags last asked for. What was seen for the first time is
 * told within a second, because somebody may be looking whether it works; what is seen all the time, every
 * few seconds.
 *
 * While management does not read, news stay in the table. What was told is marked after NATS has taken
 * it. If the process dies between the two it is told again, which does no harm: the latest instant wins.
 */
const pollIntervalMs = 1_000;
/** How many looks pass before what was seen again is told too. */
const pollsUntilLater = 5;
/** Some 250 KB, when there is so much of all three. */
const maxRowsPerTable = 1_000;

export function sendLastSeen(options: {
  sql: Sql;
  client: JetStreamClient;
  /** Whether NATS is there to send to. */
  canSend: () => boolean;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, client, canSend, logger } = options;
  let looks = 0;
  let isPostponed = false;

  async function send(signal: AbortSignal): Promise<void> {
    looks += 1;
    const kinds: UnsentKind[] = looks % pollsUntilLater === 0 ? ["first", "later"] : ["first"];
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

  /** Said once for as long as it lasts: the next try is a second later. */
  function postpone(): "postponed" {
    if (!isPostponed) logger.warn("management is behind with what was last seen; it is told later");
    isPostponed = true;
    return "postponed";
  }

  return startInterval(send, {
    intervalMs: pollIntervalMs,
    isExpected: (error) => isOutage(error) || isBrokerUnavailable(error),
    onFailure: (err) => logger.warn({ err }, "what was last seen is not told now"),
  });
}

function largestPart({ keys, environments, flags }: UsageLastSeen): number {
  return Math.max(keys.length, environments.length, flags.length);
}

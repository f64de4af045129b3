import type { UsageLastSeen } from "@halyard/contracts";
import { isBrokerAway, publishLastSeen } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { markTold, mayTell, type News, readNews } from "./last-seen-store.ts";

/**
 * Tells management when keys were last used and flags last asked for. What was seen for the first time is
 * told within a second, because somebody may be looking whether it works; what is seen all the time, every
 * few seconds.
 *
 * While management does not read, news stay in the table. What was told is marked after NATS has taken
 * it. If the process dies between the two it is told again, which does no harm: the latest instant wins.
 */
const lookEveryMs = 1_000;
/** How many looks pass before what was seen again is told too. */
const looksUntilLater = 5;
/** Some 250 KB, when there is so much of all three. */
const mostOfEach = 1_000;

export function tellLastSeen(options: {
  sql: Sql;
  client: JetStreamClient;
  /** Whether NATS is there to send to. */
  canSend: () => boolean;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, client, canSend, logger } = options;
  let looks = 0;
  let isLeftForLater = false;

  async function tell(signal: AbortSignal): Promise<void> {
    looks += 1;
    const kinds: News[] = looks % looksUntilLater === 0 ? ["first", "later"] : ["first"];
    while (!signal.aborted && canSend() && (await tellSome(kinds)) === "there is more");
  }

  async function tellSome(
    kinds: readonly News[],
  ): Promise<"told all" | "there is more" | "left for later"> {
    return sql.begin(async (tx) => {
      if (!(await mayTell(tx))) return "told all";
      const news = await readNews(tx, { kinds, atMost: mostOfEach });
      const most = largestPart(news);
      if (most === 0) return "told all";
      if ((await publishLastSeen(client, news)) === "too many wait") return leaveForLater();
      isLeftForLater = false;
      await markTold(tx, news);
      return most === mostOfEach ? "there is more" : "told all";
    });
  }

  /** Said once for as long as it lasts: the next try is a second later. */
  function leaveForLater(): "left for later" {
    if (!isLeftForLater)
      logger.warn("management is behind with what was last seen; it is told later");
    isLeftForLater = true;
    return "left for later";
  }

  return startInterval(tell, {
    everyMs: lookEveryMs,
    isExpected: (error) => isOutage(error) || isBrokerAway(error),
    onFailure: (err) => logger.warn({ err }, "what was last seen is not told now"),
  });
}

function largestPart({ keys, environments, flags }: UsageLastSeen): number {
  return Math.max(keys.length, environments.length, flags.length);
}

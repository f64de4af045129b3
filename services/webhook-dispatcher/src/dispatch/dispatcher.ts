import { isOutage, type Sql } from "@halyard/postgres";
import { createWakeUp } from "@halyard/timing";
import type { Logger } from "pino";
import { createAttemptsUnderWay } from "./attempts-under-way.ts";
import { claimDeliveries, findLanes, settleLanes } from "./claim-store.ts";
import type { ClaimTimes, HeldClaim } from "./claimed-delivery.ts";
import type { DispatchMetrics } from "./dispatch-metrics.ts";
import type { MakeAttempt } from "./make-attempt.ts";
import { type Bounds, type Lane, planClaims, searchesFor } from "./plan-claims.ts";

/**
 * Sends deliveries when they are due. It looks for webhooks that have something due, claims of each as
 * much as its share allows, begins the attempts, and looks again until nothing more can be claimed. Then
 * it sleeps until the next one is due, until somebody says that there is something, until an attempt
 * makes room, and a second at most: another replica may have left something over.
 *
 * Nothing is kept in memory but what is under way. A process that dies leaves claims, which run out.
 */
export type Dispatcher = {
  /** There may be something that is due sooner than what is waited for. */
  wake(): void;
  /** What it has claimed and not yet recorded. */
  held(): HeldClaim[];
  /** Claims no more, and ends what is under way. */
  stop(): Promise<void>;
};

const lookEveryMs = 1_000;
/** What was found due and could not be claimed is another's, or held for a moment. */
const contendedPauseMs = 10;
const retryAfterMs = 250;

export function startDispatcher(options: {
  sql: Sql;
  makeAttempt: MakeAttempt;
  bounds: Bounds;
  claimTimes: ClaimTimes;
  newId: () => string;
  monotonicMs: () => number;
  metrics: DispatchMetrics;
  logger: Logger;
}): Dispatcher {
  const { sql, bounds, logger } = options;
  let stopping = false;
  const wakeUp = createWakeUp();
  const underWay = createAttemptsUnderWay({
    makeAttempt: options.makeAttempt,
    onRoom: () => {
      options.metrics.underWay(underWay.slots());
      wakeUp.wake();
    },
  });

  async function run(): Promise<void> {
    while (!stopping) await wakeUp.sleep(await dispatch());
  }

  /** Begins what can begin; answers how long there is nothing to do. */
  async function dispatch(): Promise<number> {
    try {
      const lanes = await look();
      const claimed = await claim(lanes);
      if (claimed === "nothing due")
        return Math.min(lookEveryMs, ...lanes.map(({ dueInMs }) => dueInMs).filter(isAhead));
      return claimed === 0 ? contendedPauseMs : 0;
    } catch (error) {
      if (!isOutage(error)) throw error;
      logger.warn({ err: error }, "what is due is not sent yet");
      return retryAfterMs;
    }
  }

  async function look(): Promise<Lane[]> {
    const searches = searchesFor(underWay.slots(), bounds);
    const lanes = await Promise.all(searches.map((search) => findLanes(sql, search, lookEveryMs)));
    return lanes.flat();
  }

  async function claim(lanes: readonly Lane[]): Promise<number | "nothing due"> {
    const planned = planClaims(lanes, underWay.slots(), bounds);
    if (planned.length === 0) return "nothing due";
    const slow = new Set(lanes.filter((lane) => lane.slow).map(({ webhookId }) => webhookId));
    let count = 0;
    for (const [atMost, claims] of Map.groupBy(planned, (one) => one.atMost)) {
      const claimedAtMs = options.monotonicMs();
      const webhookIds = claims.map(({ webhookId }) => webhookId);
      const { lastsMs } = options.claimTimes;
      const ids = { webhookIds, atMost, claim: options.newId(), lastsMs, claimedAtMs };
      const claimed = await claimDeliveries(sql, ids);
      for (const delivery of claimed)
        underWay.begin(delivery, slow.has(delivery.webhook.id) ? "slow" : "quick");
      count += claimed.length;
    }
    await settleLanes(
      sql,
      planned.map(({ webhookId }) => webhookId),
    );
    return count;
  }

  const running = run();
  return {
    wake: wakeUp.wake,
    held: underWay.held,
    async stop() {
      stopping = true;
      wakeUp.wake();
      await running;
      await underWay.finish();
    },
  };
}

const isAhead = (dueInMs: number) => dueInMs > 0;

import { isOutage, type Sql } from "@halyard/postgres";
import { releaseAll } from "@halyard/service";
import { createWakeUp } from "@halyard/timing";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { createAttemptsUnderWay } from "./attempts-under-way.ts";
import {
  type ClaimedDelivery,
  type ClaimTimes,
  claimDeliveries,
  defaultClaimTimes,
  findLanes,
  type HeldClaim,
  settleLanes,
} from "./claim-store.ts";
import { createDispatchMetrics, type DispatchMetrics } from "./dispatch-metrics.ts";
import { watchForExpiredClaims } from "./expired-claims.ts";
import { createMakeAttempt, type MakeAttempt, type MakeAttemptOptions } from "./make-attempt.ts";
import {
  type Bounds,
  defaultBounds,
  type PlannedClaim,
  planClaims,
  searchesFor,
} from "./plan-claims.ts";

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

const pollIntervalMs = 1_000;
/** What was found due and could not be claimed is another's, or held for a moment. */
const contendedPauseMs = 10;
const retryAfterMs = 250;

type DispatcherOptions = {
  sql: Sql;
  makeAttempt: MakeAttempt;
  bounds: Bounds;
  claimTimes: ClaimTimes;
  newId: () => string;
  monotonicMs: () => number;
  metrics: DispatchMetrics;
  logger: Logger;
};

export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { sql, bounds, logger } = options;
  const stopping = new AbortController();
  const wakeUp = createWakeUp();
  const underWay = createAttemptsUnderWay({
    makeAttempt: options.makeAttempt,
    onRoom: () => {
      options.metrics.underWay(underWay.slots());
      wakeUp.wake();
    },
  });

  async function run(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) await wakeUp.sleep(await dispatch(), signal);
  }

  /** Begins what can begin; answers how long there is nothing to do. */
  async function dispatch(): Promise<number> {
    try {
      const searches = searchesFor(underWay.slots(), bounds);
      const found = searches.map((search) => findLanes(sql, search, pollIntervalMs));
      const lanes = (await Promise.all(found)).flat();
      const planned = planClaims(lanes, underWay.slots(), bounds);
      if (planned.length === 0)
        return Math.min(pollIntervalMs, ...lanes.map(({ dueInMs }) => dueInMs).filter(isAhead));
      const slow = new Set(lanes.filter((lane) => lane.slow).map(({ webhookId }) => webhookId));
      const claimed = await claim(options, planned, (delivery) =>
        underWay.begin(delivery, slow.has(delivery.webhook.id) ? "slow" : "quick"),
      );
      return claimed === 0 ? contendedPauseMs : 0;
    } catch (error) {
      if (!isOutage(error)) throw error;
      logger.warn({ err: error }, "what is due is not sent yet");
      return retryAfterMs;
    }
  }

  const running = run();
  return {
    wake: wakeUp.wake,
    held: underWay.held,
    async stop() {
      stopping.abort();
      await running;
      await underWay.finish();
    },
  };
}

/** Claims deliveries, and begins each as soon as it is claimed. Returns their number. */
async function claim(
  { sql, newId, monotonicMs, claimTimes }: DispatcherOptions,
  planned: readonly PlannedClaim[],
  begin: (delivery: ClaimedDelivery) => void,
): Promise<number> {
  let count = 0;
  for (const [atMost, claims] of Map.groupBy(planned, (one) => one.atMost)) {
    const webhookIds = claims.map(({ webhookId }) => webhookId);
    const { lastsMs } = claimTimes;
    const claimedAtMs = monotonicMs();
    const ids = { webhookIds, atMost, claim: newId(), lastsMs, claimedAtMs };
    const claimed = await claimDeliveries(sql, ids);
    claimed.forEach(begin);
    count += claimed.length;
  }
  await settleLanes(
    sql,
    planned.map(({ webhookId }) => webhookId),
  );
  return count;
}

const isAhead = (dueInMs: number) => dueInMs > 0;

/** The sending of what is due: by this process, and once more of what a dead one had claimed. */
export function startDispatch(
  options: Omit<MakeAttemptOptions, "metrics"> & {
    metrics: Registry;
    bounds?: Bounds;
    claimTimes?: ClaimTimes;
  },
): Omit<Dispatcher, "held"> {
  const { claimTimes = defaultClaimTimes } = options;
  const metrics = createDispatchMetrics(options.metrics);
  const dispatcher = startDispatcher({
    bounds: defaultBounds,
    ...options,
    claimTimes,
    metrics,
    makeAttempt: createMakeAttempt({ ...options, metrics }),
  });
  const expired = watchForExpiredClaims({
    ...options,
    claimTimes,
    held: dispatcher.held,
    onFreed: dispatcher.wake,
  });
  return {
    wake: dispatcher.wake,
    stop: () => releaseAll([dispatcher.stop, expired.stop]),
  };
}

import { isOutage } from "@halyard/postgres";
import { createWakeUp } from "@halyard/timing";
import type { Registry } from "prom-client";
import { createAttemptsUnderWay } from "./attempts-under-way.ts";
import {
  type ClaimedDelivery,
  claimDeliveries,
  defaultClaimTimeoutMs,
  findLanes,
  settleLanes,
} from "./claim-store.ts";
import { createDispatchMetrics } from "./dispatch-metrics.ts";
import { createMakeAttempt, type MakeAttemptOptions } from "./make-attempt.ts";
import {
  type Bounds,
  defaultBounds,
  type PlannedClaim,
  planClaims,
  searchesFor,
} from "./plan-claims.ts";

/**
 * Sends deliveries when they are due. The dispatcher searches for due webhooks, claims as many deliveries of each as
 * its share allows, begins the attempts, and repeats this until it can claim no more. Then it sleeps until the next
 * delivery is due, `wake` is called, or another attempt may begin. It sleeps for one second at most, because another
 * replica may have left due deliveries.
 *
 * Memory contains only the attempts in progress. The claims of a failed process expire, and their deliveries are due
 * again.
 */
type Dispatcher = {
  /** Ends the sleep, because a delivery may be due earlier than expected. */
  wake(): void;
  /** Stops claiming, and ends the attempts in progress. */
  stop(): Promise<void>;
};

const pollIntervalMs = 1_000;
/** Pause if due deliveries could not be claimed, because another transaction has locked or claimed them. */
const contendedPauseMs = 10;
const retryAfterMs = 250;

type DispatchOptions = Omit<MakeAttemptOptions, "metrics"> & {
  metrics: Registry;
  bounds?: Bounds;
  claimTimeoutMs?: number;
};

export function startDispatch(options: DispatchOptions): Dispatcher {
  const { sql, bounds = defaultBounds, logger } = options;
  const metrics = createDispatchMetrics(options.metrics);
  const stopping = new AbortController();
  const wakeUp = createWakeUp();
  const underWay = createAttemptsUnderWay({
    makeAttempt: createMakeAttempt({ ...options, metrics }),
    onCapacity: () => {
      metrics.underWay(underWay.running());
      wakeUp.wake();
    },
  });

  async function run(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) await wakeUp.sleep(await dispatch(), signal);
  }

  /** Begins all attempts that may begin. Returns the time until there is more to do. */
  async function dispatch(): Promise<number> {
    try {
      const searches = searchesFor(underWay.running(), bounds);
      const found = searches.map((search) => findLanes(sql, search, pollIntervalMs));
      const lanes = (await Promise.all(found)).flat();
      const planned = planClaims(lanes, underWay.running(), bounds);
      if (planned.length === 0)
        return Math.min(pollIntervalMs, ...lanes.map(({ dueInMs }) => dueInMs).filter(isAhead));
      const slow = new Set(lanes.filter((lane) => lane.slow).map(({ webhookId }) => webhookId));
      const claimed = await claim(options, planned, (delivery) =>
        underWay.begin(delivery, slow.has(delivery.webhook.id) ? "slow" : "quick"),
      );
      return claimed === 0 ? contendedPauseMs : 0;
    } catch (error) {
      if (!isOutage(error)) throw error;
      logger.warn({ err: error }, "due deliveries could not be claimed; retrying");
      return retryAfterMs;
    }
  }

  const running = run();
  return {
    wake: wakeUp.wake,
    async stop() {
      stopping.abort();
      await running;
      await underWay.finish();
    },
  };
}

/** Claims deliveries, and begins each as soon as it is claimed. Returns their number. */
async function claim(
  { sql, newId, monotonicMs, claimTimeoutMs = defaultClaimTimeoutMs }: DispatchOptions,
  planned: readonly PlannedClaim[],
  begin: (delivery: ClaimedDelivery) => void,
): Promise<number> {
  let count = 0;
  for (const [atMost, claims] of Map.groupBy(planned, (one) => one.atMost)) {
    const webhookIds = claims.map(({ webhookId }) => webhookId);
    const claimedAtMs = monotonicMs();
    const claimed = await claimDeliveries(sql, {
      ...{ webhookIds, atMost, claimedAtMs },
      claim: newId(),
      timeoutMs: claimTimeoutMs,
    });
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

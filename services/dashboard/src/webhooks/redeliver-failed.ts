import { ApiProblem, isTemporary } from "../api/problem.ts";
import type { Delivery } from "../api/schema.d.ts";

type FailedPage = { deliveries: readonly Pick<Delivery, "id">[]; next_cursor: string | null };

export type RedeliverySource = {
  readFailed(cursor: string | undefined): Promise<FailedPage>;
  redeliver(deliveryId: string): Promise<unknown>;
};

export type Redelivery = {
  redelivered: number;
  /** Deliveries that were found so far. */
  found: number;
  /** True if more than `found` have failed. */
  hasMore: boolean;
};

/** Half of the 100 requests per second that the API allows a key, so that other users of the key are not slowed down. */
const pauseMs = 20;
/** Repetitions of a request that fails temporarily. */
const maxRepetitions = 5;

/**
 * Redelivers all deliveries that have failed, from the newest to the oldest. One that fails again meanwhile is not
 * repeated. Reports its progress after each request. Ends early when the signal is aborted, and throws the first error
 * that is not temporary.
 */
export async function redeliverFailed(
  source: RedeliverySource,
  signal: AbortSignal,
  report: (progress: Redelivery) => void,
): Promise<void> {
  const progress: Redelivery = { redelivered: 0, found: 0, hasMore: true };
  let cursor: string | undefined;
  do {
    const page = await persist(() => source.readFailed(cursor), signal);
    if (page === undefined) return;
    cursor = page.next_cursor ?? undefined;
    progress.found += page.deliveries.length;
    progress.hasMore = cursor !== undefined;
    report({ ...progress });
    for (const { id } of page.deliveries) {
      if (signal.aborted) return;
      if (await redeliverOne(source, id, signal)) progress.redelivered += 1;
      report({ ...progress });
      await pause(pauseMs, signal);
    }
  } while (cursor !== undefined && !signal.aborted);
}

/** Returns false for a delivery that was removed since it was listed. */
async function redeliverOne(
  source: RedeliverySource,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return (await persist(async () => Boolean(await source.redeliver(id)), signal)) ?? false;
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false;
    throw error;
  }
}

/** Repeats a request after temporary errors. Returns undefined when the signal is aborted. */
async function persist<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  for (let repetitions = 0; !signal.aborted; repetitions += 1) {
    try {
      return await request();
    } catch (error) {
      if (!isTemporary(error) || repetitions >= maxRepetitions) throw error;
      const seconds = error instanceof ApiProblem ? (error.retryAfter ?? 1) : 1;
      await pause(seconds * 1000, signal);
    }
  }
  return undefined;
}

/** Waits, but not beyond the abortion of the signal. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = () => resolve();
  signal.addEventListener("abort", end);
  if (signal.aborted) resolve();
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  });
}

import { type EdgeLease, leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { Clock, SlotTimes } from "./clock.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { Leases } from "./leases.ts";

export type EdgeEntryOptions = {
  edgeId: string;
  store: LeaseStore;
  clock: Clock;
  times: SlotTimes;
  logger: Logger;
};

export type OwnEntry = ReturnType<typeof createOwnEntry>;

/**
 * Number of unanswered writes in a row after which NATS counts as unavailable on an open connection. Message loss alone
 * does not cause so many.
 */
const unansweredWritesWhileConnected = 10;

/**
 * This edge's own entry, which shows that the edge is alive. The other edges count its streams while it renews the
 * entry, and end the entry if it stops. An edge whose entry expired renews it and then writes its counts again. It
 * admits nothing until the renewal, because the other edges may have granted its slots.
 */
export function createOwnEntry(
  { edgeId, store, clock, times, logger }: EdgeEntryOptions,
  leases: Leases,
) {
  const key = leaseKey.edge(edgeId);
  let renewedMs = Number.NEGATIVE_INFINITY;
  let newUntilMs = Number.NEGATIVE_INFINITY;
  let renewals = 0;
  let unanswered = 0;
  let renewing: Promise<void> | undefined;
  let isStopping = false;

  const entry = () => leases.content.edges.get(edgeId) ?? { revision: 0, isEnded: false };
  const renewedAgoMs = () => clock.monotonicMs() - renewedMs;

  /** True while the other edges certainly count the streams that this edge publishes. */
  function isCounted(): boolean {
    const { revision, isEnded } = entry();
    return store.isCurrent() && revision > 0 && !isEnded && renewedAgoMs() < times.countedForMs;
  }

  async function write(value: EdgeLease): Promise<boolean> {
    const outcome = await leases.write(key, value, entry().revision);
    unanswered = outcome === "unknown" ? unanswered + 1 : 0;
    return outcome === "written";
  }

  async function renew(): Promise<void> {
    const { isEnded, revision } = entry();
    if (isEnded) logger.warn({ edge: edgeId }, "other edges ended this edge's entry");
    if (revision === 0) renewals = 0;
    const sentMs = clock.monotonicMs();
    if (!(await write({ state: "held", renewals }))) return;
    renewedMs = sentMs;
    renewals += 1;
  }

  return {
    isCounted,
    /** True while other edges may still be publishing their counts into a new bucket. */
    isBucketNew: () => !leases.content.isEstablished && clock.monotonicMs() < newUntilMs,
    /** True while NATS is unavailable, so that streams are admitted against the last counts. */
    isUnavailable: () => unanswered >= (store.isConnected() ? unansweredWritesWhileConnected : 1),
    /** Called when every entry of the bucket has been received. */
    caughtUp() {
      newUntilMs = clock.monotonicMs() + times.publishWithinMs;
    },
    /** Renews the entry if it is due. */
    check() {
      if (isStopping || (isCounted() && renewedAgoMs() < times.renewIntervalMs)) return;
      renewing ??= renew().finally(() => {
        renewing = undefined;
      });
    },
    /** Ends the entry, so that the other edges no longer count this edge's streams. */
    async stop() {
      isStopping = true;
      await renewing;
      // An ended entry marks its bucket as established. In a new bucket, the other edges end the entry after
      // `endAfterMs`.
      if (leases.content.isEstablished) await write({ state: "ended" });
    },
  };
}

/**
 * Ends the entries of edges that stopped renewing, so that their counts no longer apply. An ended entry stays
 * while an organization's entry names the edge.
 */
export function watchOthers(
  forMs: number,
  { edgeId, store, times, logger }: EdgeEntryOptions,
  leases: Leases,
): void {
  const isNamed = (id: string) =>
    [...leases.content.organizations.values()].some(({ holders }) => id in holders);
  for (const [id, edge] of leases.content.edges) {
    edge.silentMs += forMs;
    if (id !== edgeId && !edge.isEnded && edge.silentMs > times.endAfterMs)
      void end(id, edge.revision);
    if (edge.isEnded && edge.silentMs > times.forgetAfterMs) {
      const named = isNamed(id);
      edge.silentMs = named ? 0 : Number.NEGATIVE_INFINITY;
      if (!named) void store.forget(leaseKey.edge(id));
    }
  }

  /** Has no effect if the edge has renewed its entry meanwhile. */
  async function end(id: string, over: number): Promise<void> {
    if ((await leases.write(leaseKey.edge(id), { state: "ended" }, over)) === "written")
      logger.warn({ edge: id }, "an edge stopped renewing its entry; its streams no longer count");
  }
}

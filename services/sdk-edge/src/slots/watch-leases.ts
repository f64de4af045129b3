import { leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { Clock } from "./clock.ts";
import type { KnownLeases } from "./known-leases.ts";
import { endLease } from "./lease-entry.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { SlotTimes } from "./slot-times.ts";

/** Ends the leases of edges that have fallen silent, whoever is the first to notice. */
export type LeaseWatch = {
  /** NATS has been away for so long that nobody should wait for it. */
  isAway(): boolean;
  /** Forgets the oldest of the leases that have ended. */
  forgetLongEnded(): Promise<void>;
  stop(): void;
};

/**
 * So many leases that have ended are kept, for people. Forgetting one does no harm: who finds its slots
 * somewhere ends it once more.
 */
const endedLeasesKept = 1_000;

export function watchLeases(options: {
  store: LeaseStore;
  known: KnownLeases;
  clock: Clock;
  times: SlotTimes;
  logger: Logger;
}): LeaseWatch {
  const { store, known, clock, times, logger } = options;
  let lookedMs = clock.elapsed();
  let currentMs = clock.elapsed();
  let callOff = clock.after(times.watchEveryMs, look);

  function look(): void {
    const nowMs = clock.elapsed();
    if (store.isCurrent()) {
      currentMs = nowMs;
      for (const silent of known.watch(nowMs - lookedMs)) void end(silent);
    }
    lookedMs = nowMs;
    callOff = clock.after(times.watchEveryMs, look);
  }

  /** Has no effect when the lease was renewed: then the entry is another by now. */
  async function end({ leaseId, revision }: { leaseId: string; revision: number }): Promise<void> {
    const { outcome } = await endLease(store, leaseId, revision);
    if (outcome === "written") logger.warn({ lease: leaseId }, "a silent edge's lease was ended");
  }

  return {
    isAway() {
      if (store.isCurrent()) currentMs = clock.elapsed();
      return clock.elapsed() - currentMs > times.awayAfterMs;
    },
    async forgetLongEnded() {
      for (const leaseId of known.longEnded(endedLeasesKept))
        await store.forget(leaseKey.edge(leaseId));
    },
    stop: () => callOff(),
  };
}

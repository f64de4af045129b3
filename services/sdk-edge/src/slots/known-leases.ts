/**
 * The leases of all edges, as this edge has heard of them. A lease that falls silent is to be ended, so
 * that its slots come free. How long it has been silent is counted in the moments at which this edge
 * looked, none longer than between two looks: an edge that slept has not watched meanwhile.
 */
export type KnownLeases = {
  /** All leases are heard of anew. */
  begin(): void;
  hear(leaseId: string, lease: { revision: number; isEnded: boolean }): void;
  isKnown(leaseId: string): boolean;
  isEnded(leaseId: string): boolean;
  /** Watches for a while; answers which leases have been silent for too long. */
  watch(passedMs: number): SilentLease[];
  /** The oldest of the leases that have ended, beyond the newest `kept`. */
  longEnded(kept: number): string[];
};

export type SilentLease = { leaseId: string; revision: number };

type KnownLease = { revision: number; isEnded: boolean; silentMs: number };

export function createKnownLeases(times: {
  endAfterMs: number;
  watchEveryMs: number;
}): KnownLeases {
  const leases = new Map<string, KnownLease>();

  return {
    begin: () => leases.clear(),

    hear(leaseId, { revision, isEnded }) {
      const known = leases.get(leaseId);
      if (known !== undefined && known.revision >= revision) return;
      leases.set(leaseId, { revision, isEnded, silentMs: 0 });
    },

    isKnown: (leaseId) => leases.has(leaseId),
    isEnded: (leaseId) => leases.get(leaseId)?.isEnded === true,

    watch(passedMs) {
      const watchedMs = Math.min(passedMs, times.watchEveryMs);
      const silent: SilentLease[] = [];
      for (const [leaseId, lease] of leases) {
        if (lease.isEnded) continue;
        lease.silentMs += watchedMs;
        if (lease.silentMs > times.endAfterMs) silent.push({ leaseId, revision: lease.revision });
      }
      return silent;
    },

    longEnded(kept) {
      const ended = [...leases].filter(([, lease]) => lease.isEnded);
      if (ended.length <= kept) return [];
      ended.sort(([, one], [, other]) => one.revision - other.revision);
      return ended.slice(0, ended.length - kept).map(([leaseId]) => leaseId);
    },
  };
}

import type { KnownLeases } from "./known-leases.ts";
import { endLease } from "./lease-entry.ts";
import type { LeaseStore } from "./lease-store.ts";

/**
 * Leases that hold slots but of which this edge has never heard: they may be too new, or so old that
 * they were forgotten. That is not assumed but tried: one that is there cannot be written as if it was
 * not, and one that is not there is then known to have ended.
 */
export async function endStrangers(
  leaseIds: readonly string[],
  { store, known }: { store: LeaseStore; known: KnownLeases },
): Promise<void> {
  for (const leaseId of leaseIds) {
    if (known.isKnown(leaseId)) continue;
    const written = await endLease(store, leaseId, 0);
    if (written.outcome === "written")
      known.hear(leaseId, { revision: written.revision, isEnded: true });
  }
}

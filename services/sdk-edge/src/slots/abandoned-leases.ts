import { leaseKey } from "@halyard/contracts";
import { endLease, stateOf } from "./lease-entry.ts";
import type { LeaseStore } from "./lease-store.ts";

/**
 * Leases that this edge uses no more, until they have ended for all to see. The others would end them
 * too, when they have been silent for long enough; but what they hold can be had at once.
 */
export type AbandonedLeases = {
  add(leaseId: string, revision: number): void;
  /** Ends what it can; what nobody answered to stays. */
  end(): Promise<void>;
  readonly size: number;
};

export function createAbandonedLeases(store: LeaseStore): AbandonedLeases {
  /** The revisions under which they were known last. */
  const revisions = new Map<string, number>();

  async function lookAgain(leaseId: string): Promise<void> {
    const found = await store.read(leaseKey.edge(leaseId));
    if (found.outcome === "unknown") return;
    if (found.entry !== undefined && stateOf(found.entry) === "held")
      revisions.set(leaseId, found.entry.revision);
    else revisions.delete(leaseId);
  }

  return {
    add: (leaseId, revision) => void revisions.set(leaseId, revision),
    async end() {
      for (const [leaseId, revision] of [...revisions]) {
        const { outcome } = await endLease(store, leaseId, revision);
        if (outcome === "written") revisions.delete(leaseId);
        if (outcome === "conflict") await lookAgain(leaseId);
      }
    },
    get size() {
      return revisions.size;
    },
  };
}

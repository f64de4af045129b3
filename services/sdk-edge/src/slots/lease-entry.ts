import { checkEdgeLease, type EdgeLease, leaseKey } from "@halyard/contracts";
import type { LeaseStore, StoredEntry, Written } from "./lease-store.ts";

/** Writes that an edge has a lease; a new one over revision 0. */
export function writeHeld(
  store: LeaseStore,
  leaseId: string,
  { renewals, over }: { renewals: number; over: number },
): Promise<Written> {
  const lease: EdgeLease = { state: "held", renewals };
  return store.write(leaseKey.edge(leaseId), lease, over);
}

/** Ends a lease as it was seen; one that was never there (revision 0) cannot begin after that. */
export function endLease(store: LeaseStore, leaseId: string, over: number): Promise<Written> {
  const lease: EdgeLease = { state: "ended" };
  return store.write(leaseKey.edge(leaseId), lease, over);
}

/** What an entry says of a lease; undefined where it says nothing that this version understands. */
export function stateOf(entry: StoredEntry): EdgeLease["state"] | undefined {
  const checked = checkEdgeLease(entry.value);
  return checked.ok ? checked.value.state : undefined;
}

/**
 * How many of an organization's slots an edge may write down for itself: as many as it needs, of what
 * the others leave of the limit. What is open stays, also when the limit has become lower than that.
 */
export type Claim = {
  /** Slots by the lease that holds them, as they stand. */
  holders: Readonly<Record<string, number>>;
  /** The lease for which is claimed. */
  leaseId: string;
  isEnded: (leaseId: string) => boolean;
  /** Streams that the edge has open. */
  open: number;
  /** Streams that wait to be opened. */
  waiting: number;
  /** null: as many as one likes. */
  limit: number | null;
};

export type ClaimDecision = {
  /** What is to be written. Leases that have ended hold nothing any more. */
  holders: Record<string, number>;
  /** The edge's part of it. */
  slots: number;
  /** How many of those that wait may be opened once it is written. */
  granted: number;
  /** Whether all together are within the limit. Else nobody may follow even one that closes. */
  isWithinLimit: boolean;
};

export function decideClaim(claim: Claim): ClaimDecision {
  const { leaseId, open, waiting, limit } = claim;
  const others = Object.entries(claim.holders).filter(
    ([holder]) => holder !== leaseId && !claim.isEnded(holder),
  );
  const taken = others.reduce((sum, [, slots]) => sum + slots, 0);
  const free = limit === null ? Number.POSITIVE_INFINITY : limit - taken - open;
  const granted = Math.max(0, Math.min(waiting, free));
  const slots = open + granted;
  const holders = Object.fromEntries(others);
  return {
    holders: slots === 0 ? holders : { ...holders, [leaseId]: slots },
    slots,
    granted,
    isWithinLimit: granted <= free,
  };
}

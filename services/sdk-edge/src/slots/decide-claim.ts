/** An edge's request to write its count of one organization's streams. */
export type Claim = {
  /** Counts by edge, as the entry has them. */
  holders: Readonly<Record<string, number>>;
  edgeId: string;
  /** True for an edge whose entry was ended. Its count is removed. */
  isEnded: (edgeId: string) => boolean;
  /** Open streams on this edge. They count even if the limit is lower. */
  open: number;
  waiting: number;
  /** null: unlimited. */
  limit: number | null;
};

export type ClaimDecision = {
  holders: Record<string, number>;
  /** Number of waiting streams that may open once `holders` is written. */
  granted: number;
};

export function decideClaim({ edgeId, isEnded, open, waiting, limit, ...claim }: Claim) {
  const others = Object.entries(claim.holders).filter(([id]) => id !== edgeId && !isEnded(id));
  const taken = others.reduce((sum, [, count]) => sum + count, open);
  const free = limit === null ? waiting : Math.max(0, limit - taken);
  const granted = Math.min(waiting, free);
  const own = open + granted;
  const holders = Object.fromEntries(own === 0 ? others : [...others, [edgeId, own]]);
  return { holders, granted } satisfies ClaimDecision;
}

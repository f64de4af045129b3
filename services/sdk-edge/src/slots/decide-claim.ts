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

/** Returns the new counts, and how many waiting streams may open once they are written. */
export function decideClaim({ edgeId, isEnded, open, waiting, limit, ...claim }: Claim) {
  const others = Object.entries(claim.holders).filter(([id]) => id !== edgeId && !isEnded(id));
  const taken = others.reduce((sum, [, count]) => sum + count, open);
  const granted = limit === null ? waiting : Math.min(waiting, Math.max(0, limit - taken));
  const own: [string, number][] = open + granted === 0 ? [] : [[edgeId, open + granted]];
  return { holders: Object.fromEntries([...others, ...own]), granted };
}

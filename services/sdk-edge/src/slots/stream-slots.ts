import { raisedByPlan } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/service";

/** The open streams that an organization's plan allows, over all edges together. */
export type StreamSlots = {
  /**
   * Requests a slot before a stream opens. `decided` is called exactly once, possibly before `take`
   * returns. The caller returns a granted slot with `release`.
   */
  take(organizationId: string, decided: Decided): void;
  release(organizationId: string): void;
};

export type Decided = (problem: Problem | undefined) => void;

/** Has no `Retry-After`, because the time at which a stream closes is unknown. */
export function streamLimitReached(limit: number): Problem {
  const headers = {
    "ratelimit-policy": `"sse";q=${limit};qu="concurrent-requests"`,
    ratelimit: `"sse";r=0`,
  };
  return createProblem("RATE_001", `${problemAt(limit)} ${raisedByPlan}`, headers);
}

function problemAt(limit: number): string {
  if (limit === 0) return "The organization's plan allows no streams.";
  if (limit === 1)
    return "The one stream that the organization's plan allows is open. Close it, or retry later.";
  return `All ${limit} streams that the organization's plan allows are open. Close one, or retry later.`;
}

export const slotCountsUnavailable = createProblem(
  "SERVER_002",
  "The number of open streams is unavailable; retry after 1 s.",
);

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

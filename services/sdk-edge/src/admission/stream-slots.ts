import { raisedByPlan } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { OpenStreams } from "@halyard/reports";

/** The open streams that an organization's plan allows, over all edges together. */
export type StreamSlots = {
  /** Takes a slot for a stream, or returns the problem. The caller returns a taken slot with `release`. */
  take(organizationId: string): Problem | undefined;
  release(organizationId: string): void;
  /** True once the other edges have had time to report their streams to this edge. */
  knowsOthers(): boolean;
};

/** Open streams by organization, without organizations that have none. */
export type Counts = Map<string, number>;

/**
 * Admits a stream while the streams of this edge and those that the other edges reported are fewer than the limit. Open
 * streams are never closed to enforce a limit.
 */
export function createStreamSlots(options: {
  open: Counts;
  others: Pick<OpenStreams, "of">;
  /** Maximum number of open streams of an organization; null: unlimited. */
  limitOf: (organizationId: string) => number | null;
  /** Called after an organization's count has changed. */
  onChanged: (organizationId: string) => void;
  onRejected: () => void;
}): Pick<StreamSlots, "take" | "release"> {
  const { open, others, limitOf, onChanged, onRejected } = options;
  const openOf = (organizationId: string) => open.get(organizationId) ?? 0;
  return {
    take(organizationId) {
      const limit = limitOf(organizationId);
      if (limit !== null && openOf(organizationId) + others.of(organizationId) >= limit) {
        onRejected();
        return streamLimitReached(limit);
      }
      open.set(organizationId, openOf(organizationId) + 1);
      onChanged(organizationId);
      return undefined;
    },
    release(organizationId) {
      const left = openOf(organizationId) - 1;
      if (left > 0) open.set(organizationId, left);
      else open.delete(organizationId);
      onChanged(organizationId);
    },
  };
}

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

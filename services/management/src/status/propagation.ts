import type { SystemStatus } from "@halyard/contracts";

type Figures = SystemStatus["propagation"];

/** Times that the last changes needed to reach every live edge. */
export type Propagation = {
  /** Records a change. `appliedMs` is null if the edges did not apply it in time. */
  record(change: { committedAt: Date; appliedMs: number | null }): void;
  figures(): Figures;
};

const maxRecent = 100;

export function createPropagation(): Propagation {
  const recent: Figures["recent"] = [];
  return {
    record({ committedAt, appliedMs }) {
      recent.unshift({
        committed_at: committedAt.toISOString(),
        applied_ms: appliedMs === null ? null : Math.round(appliedMs * 10) / 10,
      });
      recent.length = Math.min(recent.length, maxRecent);
    },
    figures() {
      const sorted = recent
        .map(({ applied_ms }) => applied_ms ?? Number.POSITIVE_INFINITY)
        .toSorted((a, b) => a - b);
      /** Returns the smallest value that at least this share of the changes does not exceed. */
      const percentile = (share: number) => {
        const value = sorted[Math.ceil(sorted.length * share) - 1];
        return value === undefined || value === Number.POSITIVE_INFINITY ? null : value;
      };
      return { recent: [...recent], median_ms: percentile(0.5), p99_ms: percentile(0.99) };
    },
  };
}

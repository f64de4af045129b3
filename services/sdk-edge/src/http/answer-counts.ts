/**
 * Counts responses by endpoint and status. They are plain numbers, which are read when the metrics are collected,
 * because a counter with labels costs more than the rest of a response.
 */
export type AnswerCounts = {
  count(endpoint: string, status: number): void;
  each(visit: (endpoint: string, status: number, count: number) => void): void;
};

/** One more than the highest status of HTTP. */
const statuses = 600;

export function createAnswerCounts(): AnswerCounts {
  const byEndpoint = new Map<string, Float64Array>();
  return {
    count(endpoint, status) {
      let counts = byEndpoint.get(endpoint);
      if (counts === undefined) {
        counts = new Float64Array(statuses);
        byEndpoint.set(endpoint, counts);
      }
      counts[status] = (counts[status] ?? 0) + 1;
    },
    each(visit) {
      for (const [endpoint, counts] of byEndpoint)
        counts.forEach((count, status) => {
          if (count > 0) visit(endpoint, status, count);
        });
    },
  };
}

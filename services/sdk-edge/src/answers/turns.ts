/**
 * Does work of many organizations, one piece at a time. After each piece it is the next organization's turn, so a short
 * preparation of one never waits for a long preparation of another.
 */
type Turns = {
  /** Resolves with the result of the work. */
  take<T>(organizationId: string, work: () => Promise<T>): Promise<T>;
};

export function createTurns(): Turns {
  /** Starts of the waiting pieces by organization; next to be served first. */
  const waiting = new Map<string, (() => void)[]>();
  let isBusy = false;

  function startNext(): void {
    const [next] = waiting;
    isBusy = next !== undefined;
    if (next === undefined) return;
    const [organizationId, [start, ...others]] = next;
    waiting.delete(organizationId);
    if (others.length > 0) waiting.set(organizationId, others);
    start?.();
  }

  return {
    async take(organizationId, work) {
      await new Promise<void>((start) => {
        waiting.set(organizationId, [...(waiting.get(organizationId) ?? []), start]);
        if (!isBusy) startNext();
      });
      try {
        return await work();
      } finally {
        startNext();
      }
    },
  };
}

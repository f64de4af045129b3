/**
 * Who waits for which rows of the outbox. A write registers its rows before it commits, so that no
 * confirmation can come too early; the relay confirms rows as the broker acknowledges them, in this
 * process or, by a PostgreSQL notification, from the process that leads.
 */
export type Publications = {
  /** Resolves when all rows have been confirmed. `forget` ends the waiting early. */
  expect(rowIds: readonly number[]): { confirmed: Promise<void>; forget: () => void };
  confirm(rowIds: Iterable<number>): void;
};

type Waiter = { missing: number; resolve: () => void };

export function createPublications(): Publications {
  const waiters = new Map<number, Waiter>();
  return {
    expect(rowIds) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiter = { missing: rowIds.length, resolve };
      for (const id of rowIds) waiters.set(id, waiter);
      if (rowIds.length === 0) resolve();
      return {
        confirmed: promise,
        forget: () => {
          for (const id of rowIds) waiters.delete(id);
        },
      };
    },
    confirm(rowIds) {
      for (const id of rowIds) {
        const waiter = waiters.get(id);
        if (waiter === undefined) continue;
        waiters.delete(id);
        waiter.missing -= 1;
        if (waiter.missing === 0) waiter.resolve();
      }
    },
  };
}

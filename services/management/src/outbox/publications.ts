import type { SnapshotRevision } from "@halyard/contracts";

/**
 * Tracks writes that wait for the publication of their outbox rows. The relay confirms rows that the broker has
 * acknowledged: directly in the leading process, and by a PostgreSQL notification in the others. A write registers its
 * rows when it knows their ids. The confirmation is always later, because the relay reads only committed rows.
 */
export type Publications = {
  /**
   * Registers rows. `confirmed` resolves when all of them are published, with a snapshot revision that contains their
   * entries, if there are any. `forget` removes the registration.
   */
  expect(rowIds: readonly number[]): Expected;
  confirm(rowIds: Iterable<number>, revision?: SnapshotRevision): void;
};

export type Expected = { confirmed: Promise<SnapshotRevision | undefined>; forget: () => void };

type Waiter = {
  missing: number;
  revision: SnapshotRevision | undefined;
  resolve: (revision: SnapshotRevision | undefined) => void;
};

/**
 * Creates the tracker. `onRevision` is called with each revision of the relay, before the rows of the revision are
 * confirmed.
 */
export function createPublications(
  onRevision?: (revision: SnapshotRevision) => void,
): Publications {
  const waiters = new Map<number, Waiter>();
  return {
    expect(rowIds) {
      const { promise, resolve } = Promise.withResolvers<SnapshotRevision | undefined>();
      const waiter = { missing: rowIds.length, revision: undefined, resolve };
      for (const id of rowIds) waiters.set(id, waiter);
      if (rowIds.length === 0) resolve(undefined);
      return {
        confirmed: promise,
        forget: () => {
          for (const id of rowIds) waiters.delete(id);
        },
      };
    },
    confirm(rowIds, revision) {
      if (revision !== undefined) onRevision?.(revision);
      for (const id of rowIds) {
        const waiter = waiters.get(id);
        if (waiter === undefined) continue;
        waiters.delete(id);
        waiter.missing -= 1;
        // Confirmations arrive in the order of publication.
        if (revision !== undefined) waiter.revision = revision;
        if (waiter.missing === 0) waiter.resolve(waiter.revision);
      }
    },
  };
}

import type { SnapshotRevision } from "@halyard/contracts";

/**
 * Writes that wait until their rows of the outbox are published. The relay confirms rows when the broker has
 * acknowledged them: in this process or, by a PostgreSQL notification, in the process that leads. A write registers
 * its rows when it knows their ids. A confirmation comes later, because the relay reads the rows after the commit.
 */
export type Publications = {
  /**
   * `confirmed` resolves when all rows are published, with a revision of the snapshot that contains their
   * entries, if the relay named one. `forget` ends the wait early.
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

/** `onRevision` receives each revision that the relay names, before the rows of the revision are confirmed. */
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

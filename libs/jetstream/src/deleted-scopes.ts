import type { SnapshotEntry } from "@halyard/contracts";
import type { Logger } from "pino";
import type { SnapshotPart } from "./follow-snapshot.ts";
import { Tombstones } from "./tombstones.ts";

/**
 * Removes the rows that a service stores about deleted projects, environments or organizations. The tombstones in the
 * snapshot announce the deletions. They outlive the removal of management's own rows, so a crash or an outage delays
 * the removal but does not prevent it.
 *
 * A tombstone that arrives while following takes effect immediately. A tombstone that a read found may be wrong: after
 * a restore of the database, until management has rebuilt the snapshot, it contains tombstones of scopes that exist
 * again. Such a tombstone takes effect some time after the next write to the snapshot. Only the relay's leader writes
 * to the snapshot, and it first compares the database with the snapshot. Without a leader, nothing is removed.
 *
 * An outage of PostgreSQL may end with an older database, so tombstones whose rows could not be removed count as found.
 */
export type DeletedScopes = SnapshotPart & { stop(): Promise<void> };

type ScopeKind = "organization" | "project" | "environment";

const pollIntervalMs = 1_000;

type RemovalOptions = {
  kind: ScopeKind;
  /** Returns the revision of the snapshot; undefined while the follower is not current or the snapshot is rebuilt. */
  settledRevision: () => Promise<number | undefined>;
  /** Removes rows in batches. It can be called again for a scope without rows. */
  remove: (ids: readonly string[], mayContinue: () => boolean) => Promise<void>;
  isOutage: (error: unknown) => boolean;
  monotonicMs: () => number;
  logger: Logger;
};

export function removeOfDeletedScopes(options: RemovalOptions): DeletedScopes {
  const { kind, settledRevision, remove, isOutage, monotonicMs, logger } = options;
  let tombstones = new Tombstones();
  let isStopping = false;
  let working: Promise<void> | undefined;
  const timer = setInterval(begin, pollIntervalMs).unref();

  async function removeDue(): Promise<void> {
    const present = tombstones;
    const due = present.due(monotonicMs());
    if (due.length === 0 && !present.hasFound()) return;
    present.readingRevision();
    const revision = await settledRevision();
    // A full read may have replaced the tombstones meanwhile.
    if (revision === undefined || present !== tombstones) return;
    present.confirmFound(revision, monotonicMs());
    if (due.length === 0) return;
    const ids = due.map(({ id }) => id);
    await remove(ids, () => !isStopping && present === tombstones);
    present.removed(due, monotonicMs());
  }

  function begin(): void {
    if (isStopping) return;
    working ??= removeDue()
      .catch((err: unknown) => {
        if (!isOutage(err)) throw err;
        tombstones.countAsFound();
        logger.warn(
          { err, kind },
          "rows of deleted resources could not be removed; retrying later",
        );
      })
      .finally(() => {
        working = undefined;
      });
  }

  return {
    apply(entry) {
      const id = deletedScope(entry, kind);
      if (id === undefined) return;
      tombstones.addArrived(id, monotonicMs());
      begin();
    },
    resume(entry) {
      const id = deletedScope(entry, kind);
      if (id !== undefined) tombstones.addFound(id);
    },
    beginReplacing() {
      const next = new Tombstones();
      return {
        take(entry) {
          const id = deletedScope(entry, kind);
          if (id !== undefined) next.addFound(id);
        },
        finish() {
          tombstones = next;
        },
      };
    },
    async stop() {
      isStopping = true;
      clearInterval(timer);
      await working;
    },
  };
}

/** Returns the id of the scope if the entry is its deletion. */
function deletedScope({ address, value }: SnapshotEntry, kind: ScopeKind): string | undefined {
  if (!("deleted" in value) || address.kind !== kind) return undefined;
  if (address.kind === "project") return address.projectId;
  if (address.kind === "environment") return address.environmentId;
  return address.organizationId;
}

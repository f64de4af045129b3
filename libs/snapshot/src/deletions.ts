import {
  type Deletion,
  type EntryAddress,
  type EntryKind,
  entryKey,
  type SnapshotEntry,
} from "@halyard/contracts";
import type { SnapshotPart } from "./follow-snapshot.ts";

type AddressOf<Kind extends EntryKind> = Extract<EntryAddress, { kind: Kind }>;

/**
 * The tombstones in the snapshot, except those of chunks, which are many and have no data in other services. The
 * tombstone of an environment also covers its flags.
 */
export type Deletions = SnapshotPart & {
  has(address: EntryAddress): boolean;
  /** Returns what was deleted before a Unix time in milliseconds. */
  before<Kind extends EntryKind>(kind: Kind, atMs: number): AddressOf<Kind>[];
};

export function createDeletions(): Deletions {
  let deletions = new Map<string, Deletion>();

  function takeInto(taken: Map<string, Deletion>, { address, value }: SnapshotEntry): void {
    if ("deleted" in value && address.kind !== "chunk")
      taken.set(entryKey(address), { address, value });
  }

  return {
    apply: (entry) => takeInto(deletions, entry),
    beginReplacing() {
      const next = new Map<string, Deletion>();
      return {
        take: (entry) => takeInto(next, entry),
        finish() {
          deletions = next;
        },
      };
    },
    has: (address) => deletions.has(entryKey(address)),
    before: <Kind extends EntryKind>(kind: Kind, atMs: number) =>
      [...deletions.values()].flatMap(({ address, value }) =>
        address.kind === kind && Date.parse(value.committed_at) < atMs
          ? [address as AddressOf<Kind>]
          : [],
      ),
  };
}

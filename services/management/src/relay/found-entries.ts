import type { KeySignatures } from "@halyard/api-keys";
import {
  checkCompleteEntry,
  completeKey,
  type EntryAddress,
  entryKey,
  isSignedEntry,
  type KeyEntry,
  type LiveEntry,
  parseEntry,
  type Tombstone,
} from "@halyard/contracts";

/** An entry of the snapshot after the recorded sequence. */
export type FoundEntry = { key: string; sha256: string; origin: EntryOrigin };

/** An outbox row without a recorded sequence: it is unsent, or it was superseded by a newer value. */
export type UnrecordedValue = { id: number; key: string; sha256: string; isSent: boolean };

/**
 * Compares entries that a former leader published with the outbox. `superseded` are unsent rows with older values,
 * which must be settled. Otherwise they would be published after the newer value. A reader that starts in between would
 * use them, for example a key that is already revoked.
 */
export function compareFound(
  entries: readonly FoundEntry[],
  values: readonly UnrecordedValue[],
): { unexplained: Set<FoundEntry>; superseded: number[] } {
  const valuesOf = Map.groupBy(values, ({ key }) => key);
  const unexplained = new Set<FoundEntry>();
  const superseded: number[] = [];
  for (const entry of entries) {
    const { key, sha256 } = entry;
    const known = valuesOf.get(key) ?? [];
    const published = known.findLast((value) => value.sha256 === sha256);
    if (published === undefined) unexplained.add(entry);
    else for (const { id, isSent } of known) if (!isSent && id < published.id) superseded.push(id);
  }
  return { unexplained, superseded };
}

/**
 * The author of an entry: management or another client. JetStream publishes a reply to any subject that a request
 * names, so any client can store a message in the snapshot.
 *
 * For a signed entry, the origin is the value itself, because its signature decides. A rebuild verifies no signatures,
 * because a verification is expensive.
 */
export type EntryOrigin = "foreign" | "management" | KeyEntry | Tombstone;

/** Returns the author of an entry as its key and content show it. */
export function originOf(key: string, payload: string): EntryOrigin {
  const checked = parseEntry(key, parsed(payload));
  if (!checked?.ok) return "foreign";
  const entry = checked.value;
  if (isSignedEntry(entry)) return entry.value;
  const { value } = entry;
  const isOfKey = "deleted" in value || entryKey(addressOf(value)) === key;
  return isOfKey ? "management" : "foreign";
}

export function isForeign(key: string, origin: EntryOrigin, signatures: KeySignatures): boolean {
  if (typeof origin === "string") return origin === "foreign";
  return !signatures.isGenuine(key, origin);
}

/** Returns whether this is a valid `complete` entry. */
export const isComplete = (key: string, payload: string): boolean =>
  key === completeKey && checkCompleteEntry(parsed(payload)).ok;

function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}

function addressOf(entry: LiveEntry): EntryAddress {
  const { kind, organization_id: organizationId } = entry;
  switch (kind) {
    case "organization":
      return { kind, organizationId };
    case "project":
      return { kind, organizationId, projectId: entry.project_id };
    case "environment":
      return { kind, organizationId, environmentId: entry.environment_id };
    case "key":
      return { kind, organizationId, keyId: entry.key_id };
    case "flag":
      return {
        ...{ kind, organizationId },
        ...{ environmentId: entry.environment_id, flagId: entry.flag_id },
      };
  }
}

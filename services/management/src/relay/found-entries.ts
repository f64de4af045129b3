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

/** An entry that is in the snapshot behind the recorded sequence. */
export type FoundEntry = { key: string; sha256: string; origin: EntryOrigin };

/** A row of the outbox whose value has no recorded sequence: it is unsent, or a newer value has overtaken it. */
export type UnrecordedValue = { id: number; key: string; sha256: string; isSent: boolean };

/**
 * Compares entries that a former leader published with the rows of the outbox. Unsent rows of
 * older values must be settled. Otherwise they are published after the newer value, and a reader that starts in
 * between uses them: for example a key that is already revoked.
 */
export function compareFound(
  entries: readonly FoundEntry[],
  values: readonly UnrecordedValue[],
): { unexplained: FoundEntry[]; superseded: number[] } {
  const valuesOf = Map.groupBy(values, ({ key }) => key);
  const unexplained: FoundEntry[] = [];
  const superseded: number[] = [];
  for (const entry of entries) {
    const { key, sha256 } = entry;
    const known = valuesOf.get(key) ?? [];
    const published = known.findLast((value) => value.sha256 === sha256);
    if (published === undefined) unexplained.push(entry);
    else for (const { id, isSent } of known) if (!isSent && id < published.id) superseded.push(id);
  }
  return { unexplained, superseded };
}

/**
 * Distinguishes the entries of management from those of other clients. JetStream publishes a reply to any
 * subject that a request names, so any client can have a message stored in the snapshot.
 *
 * The value of a signed entry is kept, because its signature decides, and a verification is expensive.
 */
export type EntryOrigin = "foreign" | "management" | KeyEntry | Tombstone;

/** Returns who wrote an entry with this key, as far as its content shows. */
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

/** Returns whether this is a valid entry `complete`. */
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

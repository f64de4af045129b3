import type { SnapshotEntry } from "@halyard/contracts";
import { isDeleted, type Snapshot } from "./snapshot.ts";

/** A snapshot's entries one by one, from which `buildSnapshot` makes the same snapshot again. */
export function* entriesOf(snapshot: Snapshot): Generator<SnapshotEntry> {
  for (const [organizationId, value] of snapshot.organizations)
    yield { address: { kind: "organization", organizationId }, value };
  for (const [environmentId, value] of snapshot.deletedEnvironments)
    yield {
      address: { kind: "environment", organizationId: value.organization_id, environmentId },
      value,
    };
  for (const [keyId, value] of snapshot.keys)
    yield { address: { kind: "key", organizationId: value.organization_id, keyId }, value };
  for (const { organizationId, environmentId, flags } of snapshot.environments.values())
    for (const [flagId, value] of flags)
      yield { address: { kind: "flag", organizationId, environmentId, flagId }, value };
}

/** How many entries of each kind there are, deleted ones apart. */
export function countEntries(snapshot: Snapshot): Record<EntryCount, number> {
  const counts = { organization: 0, key: 0, flag: 0, environment: 0, deleted: 0 };
  counts.environment = snapshot.environments.size;
  counts.deleted = snapshot.deletedEnvironments.size;
  for (const value of snapshot.organizations.values())
    counts[isDeleted(value) ? "deleted" : "organization"] += 1;
  for (const value of snapshot.keys.values()) counts[isDeleted(value) ? "deleted" : "key"] += 1;
  for (const { flags } of snapshot.environments.values())
    for (const value of flags.values()) counts[isDeleted(value) ? "deleted" : "flag"] += 1;
  return counts;
}

export type EntryCount = "organization" | "key" | "flag" | "environment" | "deleted";

import type { EnvironmentFlags, Snapshot } from "./snapshot.ts";

/** The ids of what differs between two states of a snapshot. Empty when they are equal. */
export type Changed = {
  environments: ReadonlySet<string>;
  keys: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
};

export function isNothing(changed: Changed): boolean {
  return changed.environments.size + changed.keys.size + changed.organizations.size === 0;
}

/** Compares two snapshots. Entries are compared by identity: those that both share have not changed. */
export function changedBetween(before: Snapshot | undefined, after: Snapshot): Changed {
  return {
    environments: new Set([
      ...differingIds(before?.environments, after.environments, haveSameFlags),
      ...differingIds(before?.deletedEnvironments, after.deletedEnvironments, Object.is),
    ]),
    keys: differingIds(before?.keys, after.keys, Object.is),
    organizations: differingIds(before?.organizations, after.organizations, Object.is),
  };
}

function differingIds<V>(
  before: ReadonlyMap<string, V> | undefined,
  after: ReadonlyMap<string, V>,
  areSame: (one: V, other: V) => boolean,
): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const [id, value] of after) {
    const earlier = before?.get(id);
    if (earlier === undefined || !areSame(earlier, value)) ids.add(id);
  }
  if (before !== undefined) for (const id of before.keys()) if (!after.has(id)) ids.add(id);
  return ids;
}

function haveSameFlags({ flags: before }: EnvironmentFlags, { flags: after }: EnvironmentFlags) {
  if (before.size !== after.size) return false;
  for (const [flagId, entry] of after) if (before.get(flagId) !== entry) return false;
  return true;
}

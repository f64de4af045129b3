import type { Snapshot } from "./snapshot.ts";

/** What differs between two snapshots, by id. Nothing in it means that they say the same. */
export type Changed = {
  environments: ReadonlySet<string>;
  keys: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
};

export function isNothing(changed: Changed): boolean {
  return changed.environments.size + changed.keys.size + changed.organizations.size === 0;
}

/** Compares by identity: what two snapshots share has not changed. */
export function changedBetween(before: Snapshot | undefined, after: Snapshot): Changed {
  return {
    environments: differingIds(before?.environments, after.environments),
    keys: differingIds(before?.keys, after.keys),
    organizations: differingIds(before?.organizations, after.organizations),
  };
}

function differingIds<V>(
  before: ReadonlyMap<string, V> | undefined,
  after: ReadonlyMap<string, V>,
): ReadonlySet<string> {
  const ids = new Set<string>();
  if (before === after) return ids;
  for (const [id, value] of after) if (before?.get(id) !== value) ids.add(id);
  if (before !== undefined) for (const id of before.keys()) if (!after.has(id)) ids.add(id);
  return ids;
}

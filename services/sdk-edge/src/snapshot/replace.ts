import { type Changed, changedBetween } from "./changed.ts";
import { settle } from "./newest-wins.ts";
import type { EnvironmentFlags, Snapshot } from "./snapshot.ts";

/**
 * Takes what a full read found in place of what is held.
 *
 * Another epoch means that everything was written anew, perhaps from an older state of the database,
 * so versions of before say nothing: the read counts, alone.
 *
 * Under the same epoch the newest version of an entry stays, whichever side has it. What the read
 * lacks altogether is gone, unless `followedUntilNow` says that the entry was held from following this
 * very bucket a short while ago: a deletion leaves an entry that is kept for days, so something that
 * is merely missing was lost by the broker and will be written again.
 */
export function replaceSnapshot(
  held: Snapshot | undefined,
  read: Snapshot,
  { followedUntilNow }: { followedUntilNow: boolean },
): { snapshot: Snapshot; changed: Changed } {
  const snapshot =
    held === undefined || held.epoch !== read.epoch
      ? read
      : settleSnapshots(held, read, { keepMissing: followedUntilNow });
  return { snapshot, changed: changedBetween(held, snapshot) };
}

type Rule = { keepMissing: boolean };

function settleSnapshots(held: Snapshot, read: Snapshot, rule: Rule): Snapshot {
  return {
    epoch: held.epoch,
    organizations: settle(held.organizations, read.organizations, rule),
    keys: settle(held.keys, read.keys, rule),
    environments: settleEnvironments(held.environments, read.environments, rule),
  };
}

function settleEnvironments(
  held: Snapshot["environments"],
  read: Snapshot["environments"],
  rule: Rule,
): Snapshot["environments"] {
  const settled = new Map<string, EnvironmentFlags>();
  for (const [environmentId, found] of read) {
    const before = held.get(environmentId);
    settled.set(environmentId, before === undefined ? found : settleFlags(before, found, rule));
  }
  if (rule.keepMissing)
    for (const [environmentId, before] of held)
      if (!read.has(environmentId)) settled.set(environmentId, before);
  return settled;
}

function settleFlags(held: EnvironmentFlags, read: EnvironmentFlags, rule: Rule): EnvironmentFlags {
  const flags = settle(held.flags, read.flags, rule);
  return flags === held.flags ? held : { ...held, flags };
}

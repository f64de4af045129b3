import {
  type ConfigurationTag,
  configurationTagOf,
  type StampedFlag,
  stampOf,
  tagOfFlags,
} from "../environment/configuration-tag.ts";
import type { EnvironmentFlags, Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotChange } from "../snapshot/snapshot-holder.ts";

/**
 * Which states an environment was in before the present one, so that a client that was told of one of
 * them by an edge that is behind this one need not wait for it.
 *
 * For each change of a flag it is noted what the flag was before; the states are worked out from that
 * backwards, and only when somebody comes with a tag that is not the present one. All edges take the
 * changes in the same order, but one takes several together that another takes one by one; going back
 * flag by flag meets all the states that any of them can have been in.
 */
export type RecentTags = {
  /** Hears of every change of the snapshot, in order. */
  follow(change: SnapshotChange): void;
  /** Whether this edge has been in that state, or is in it. */
  includes(environmentId: string, tag: ConfigurationTag): boolean;
};

/** What a flag was before a change; undefined: there was none. */
type Step = { flagId: string; before: StampedFlag | undefined };

/**
 * More changes than somebody makes to one environment within the second or two for which this is
 * asked. Each takes some hundred bytes.
 */
const mostSteps = 16;

export function createRecentTags(): RecentTags {
  const steps = new Map<string, Step[]>();
  const hashes = new WeakMap<EnvironmentFlags, ReadonlySet<string>>();
  let snapshot: Snapshot | undefined;

  function noteSteps(before: Snapshot, { taken }: SnapshotChange): void {
    const sinceThen = new Map<string, StampedFlag>();
    for (const { address, value } of taken) {
      if (address.kind !== "flag") continue;
      const { environmentId, flagId } = address;
      const known = before.environments.get(environmentId)?.flags.get(flagId);
      const steps = stepsOf(environmentId);
      steps.push({ flagId, before: sinceThen.get(flagId) ?? (known && stampOf(known, flagId)) });
      if (steps.length > mostSteps) steps.shift();
      sinceThen.set(flagId, stampOf(value, flagId));
    }
  }

  function stepsOf(environmentId: string): Step[] {
    let known = steps.get(environmentId);
    if (known === undefined) {
      known = [];
      steps.set(environmentId, known);
    }
    return known;
  }

  return {
    follow(change) {
      const before = snapshot;
      snapshot = change.snapshot;
      if (change.whole || before === undefined)
        for (const environmentId of change.changed.environments) steps.delete(environmentId);
      else noteSteps(before, change);
    },

    includes(environmentId, tag) {
      const present = snapshot?.environments.get(environmentId);
      if (tag.hash === configurationTagOf(present).hash) return true;
      if (present === undefined) return false;
      let known = hashes.get(present);
      if (known === undefined) {
        known = hashesBefore(present, steps.get(environmentId) ?? []);
        hashes.set(present, known);
      }
      return known.has(tag.hash);
    },
  };
}

function hashesBefore(present: EnvironmentFlags, steps: readonly Step[]): ReadonlySet<string> {
  const flags = new Map<string, StampedFlag>();
  for (const [flagId, entry] of present.flags) flags.set(flagId, stampOf(entry, flagId));
  const hashes = new Set<string>();
  for (const { flagId, before } of steps.toReversed()) {
    if (before === undefined) flags.delete(flagId);
    else flags.set(flagId, before);
    hashes.add(tagOfFlags(flags.values()).hash);
  }
  return hashes;
}

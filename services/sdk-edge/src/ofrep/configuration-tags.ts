import {
  type ConfigurationState,
  type ConfigurationTag,
  configurationStateOf,
  type StampedFlag,
  stampOf,
} from "../environment/configuration-tag.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotChange } from "../snapshot/snapshot-holder.ts";

/**
 * The present configuration tag of each environment, kept in step with the snapshot, and the tags of the
 * states before it, so that a client that was told of one of them by an edge that is behind this one need
 * not wait for it.
 *
 * For each change of a flag it is noted what the flag was before and after. The tags of earlier states are
 * worked out from that backwards, and only when a client comes with a tag that is not the present one. All
 * edges take the changes in the same order, but one takes several together that another takes one by one;
 * going back flag by flag meets all the states that any of them can have been in.
 */
export type ConfigurationTags = {
  /** Takes every change of the snapshot, in order. */
  follow(change: SnapshotChange): void;
  of(environmentId: string): ConfigurationTag;
  /** Returns whether this edge has been in that state, or is in it. */
  includes(environmentId: string, tag: ConfigurationTag): boolean;
};

/** A change of a flag; `before` is undefined where there was none. */
type Step = { before: StampedFlag | undefined; after: StampedFlag };

/** The state of an environment whose tag was asked for. What is undefined was not asked for since. */
type Present = {
  state: ConfigurationState;
  tag: ConfigurationTag | undefined;
  earlierHashes: ReadonlySet<string> | undefined;
};

/**
 * More changes than somebody makes to one environment within the second or two for which this is
 * asked. Each takes some hundred bytes.
 */
const mostSteps = 16;

export function createConfigurationTags(): ConfigurationTags {
  const stepsOf = new Map<string, Step[]>();
  const presentOf = new Map<string, Present>();
  let snapshot: Snapshot | undefined;

  function note(environmentId: string, step: Step): void {
    const steps = stepsOf.get(environmentId) ?? [];
    stepsOf.set(environmentId, steps);
    steps.push(step);
    if (steps.length > mostSteps) steps.shift();
    const present = presentOf.get(environmentId);
    if (present === undefined) return;
    present.state.change(step.before, step.after);
    present.tag = undefined;
    present.earlierHashes = undefined;
  }

  function present(environmentId: string): Present {
    let known = presentOf.get(environmentId);
    if (known === undefined) {
      const state = configurationStateOf(snapshot?.environments.get(environmentId));
      known = { state, tag: undefined, earlierHashes: undefined };
      presentOf.set(environmentId, known);
    }
    return known;
  }

  function tagOf(known: Present): ConfigurationTag {
    known.tag ??= known.state.tag;
    return known.tag;
  }

  return {
    follow(change) {
      snapshot = change.snapshot;
      if (change.whole)
        for (const environmentId of change.changed.environments) {
          stepsOf.delete(environmentId);
          presentOf.delete(environmentId);
        }
      for (const { address, before, value } of change.taken)
        if (address.kind === "flag")
          note(address.environmentId, {
            before: before && stampOf(before, address.flagId),
            after: stampOf(value, address.flagId),
          });
    },

    of: (environmentId) => tagOf(present(environmentId)),

    includes(environmentId, tag) {
      const known = present(environmentId);
      if (tag.hash === tagOf(known).hash) return true;
      known.earlierHashes ??= hashesBefore(known.state, stepsOf.get(environmentId) ?? []);
      return known.earlierHashes.has(tag.hash);
    },
  };
}

function hashesBefore(present: ConfigurationState, steps: readonly Step[]): ReadonlySet<string> {
  const state = present.copy();
  const hashes = new Set<string>();
  for (const { before, after } of steps.toReversed()) {
    state.change(after, before);
    hashes.add(state.tag.hash);
  }
  return hashes;
}

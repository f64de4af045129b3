import {
  type ConfigurationState,
  type ConfigurationTag,
  configurationStateOf,
  type StampedFlag,
  stampOf,
} from "../environment/configuration-tag.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";

/**
 * The present configuration tag of each environment and the tags of its recent states. A client that received
 * one of the recent tags from another edge does not wait: this edge is ahead.
 *
 * The last changes are kept with the flag before and after each. The tags of recent states are calculated
 * backwards from the present one, only for a client with a tag that is not the present one. All edges apply
 * changes in the same order, but one may apply several together. Going back flag by flag finds every state
 * that any edge can have been in.
 */
export type ConfigurationTags = {
  /** Takes every change of the snapshot, in order. */
  follow(change: SnapshotUpdate): void;
  of(environmentId: string): ConfigurationTag;
  /** Returns whether this edge has been in that state, or is in it. */
  includes(environmentId: string, tag: ConfigurationTag): boolean;
};

/** A change of a flag; `before` is undefined for a new flag. */
type Step = { before: StampedFlag | undefined; after: StampedFlag };

/** The state of an environment whose tag was requested; undefined parts are calculated at their next use. */
type Present = {
  state: ConfigurationState;
  tag: ConfigurationTag | undefined;
  earlierHashes: ReadonlySet<string> | undefined;
};

/**
 * Number of changes kept for each environment: more than people make within the second or two in which a
 * client refetches. Each takes some hundred bytes.
 */
const maxSteps = 16;

export function createConfigurationTags(): ConfigurationTags {
  const stepsOf = new Map<string, Step[]>();
  const presentOf = new Map<string, Present>();
  let snapshot: Snapshot | undefined;

  function note(environmentId: string, step: Step): void {
    const steps = stepsOf.get(environmentId) ?? [];
    stepsOf.set(environmentId, steps);
    steps.push(step);
    if (steps.length > maxSteps) steps.shift();
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
      if (change.isReplacement)
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

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
 * The current configuration tag of each environment and the tags of its recent states. A client with one of the recent
 * tags, which it received from another edge, does not wait, because this edge has a later state.
 *
 * The last changes are kept with the flag before and after each. The tags of recent states are calculated backwards
 * from the current one, only for a client whose tag is not the current one. All edges apply changes in the same order,
 * but an edge may apply several together. Undoing one change at a time finds every state that any edge can have had.
 */
export type ConfigurationTags = {
  /** Applies every update of the snapshot, in order. */
  follow(update: SnapshotUpdate): void;
  of(environmentId: string): ConfigurationTag;
  /** Returns whether this edge is in the state with this tag, or has recently been in it. */
  includes(environmentId: string, tag: ConfigurationTag): boolean;
};

/** A change of a flag. `before` is undefined for a new flag. */
type Step = { before: StampedFlag | undefined; after: StampedFlag };

/** The state of an environment whose tag was requested; undefined parts are calculated at their next use. */
type Present = {
  state: ConfigurationState;
  tag: ConfigurationTag | undefined;
  earlierHashes: ReadonlySet<string> | undefined;
};

/**
 * Maximum number of changes kept for each environment. It exceeds the number that people make during a refetch, which
 * takes a second or two. Each change takes some hundred bytes.
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
    follow(update) {
      snapshot = update.snapshot;
      if (update.isReplacement)
        for (const environmentId of update.changed.environments) {
          stepsOf.delete(environmentId);
          presentOf.delete(environmentId);
        }
      for (const { address, before, value } of update.taken)
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

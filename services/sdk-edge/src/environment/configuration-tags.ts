import { isDeleted, type Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import type { TakenEntry } from "../snapshot/take-entries.ts";
import {
  type ConfigurationState,
  type ConfigurationTag,
  configurationStateOf,
  type StampedFlag,
  stampOf,
} from "./configuration-tag.ts";

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
  /**
   * Returns the keys of the flags that were changed, created or deleted after the state with this tag; undefined if the
   * state is unknown.
   */
  changedSince(environmentId: string, tag: ConfigurationTag): ReadonlySet<string> | undefined;
};

/** A change of a flag. `before` is undefined for a new flag, `key` if the flag was deleted before and after. */
type Step = { key: string | undefined; before: StampedFlag | undefined; after: StampedFlag };

/** The state of an environment whose tag was requested; undefined parts are calculated at their next use. */
type Present = {
  state: ConfigurationState;
  tag: ConfigurationTag | undefined;
  earlierStates: EarlierStates | undefined;
};

/** The hash of each recent state, with the index of the first step after it. */
type EarlierStates = ReadonlyMap<string, number>;

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
    present.earlierStates = undefined;
  }

  function present(environmentId: string): Present {
    let known = presentOf.get(environmentId);
    if (known === undefined) {
      const state = configurationStateOf(snapshot?.environments.get(environmentId));
      known = { state, tag: undefined, earlierStates: undefined };
      presentOf.set(environmentId, known);
    }
    return known;
  }

  function tagOf(known: Present): ConfigurationTag {
    known.tag ??= known.state.tag;
    return known.tag;
  }

  const stepsIn = (environmentId: string) => stepsOf.get(environmentId) ?? [];

  /** Returns the index of the first step after the state with this tag; undefined if the state is unknown. */
  function firstStepAfter(environmentId: string, { hash }: ConfigurationTag): number | undefined {
    const known = present(environmentId);
    const steps = stepsIn(environmentId);
    if (hash === tagOf(known).hash) return steps.length;
    known.earlierStates ??= statesBefore(known.state, steps);
    return known.earlierStates.get(hash);
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
          note(address.environmentId, stepOf(address.flagId, before, value));
    },

    of: (environmentId) => tagOf(present(environmentId)),

    includes: (environmentId, tag) => firstStepAfter(environmentId, tag) !== undefined,

    changedSince(environmentId, tag) {
      const first = firstStepAfter(environmentId, tag);
      if (first === undefined) return undefined;
      const steps = stepsIn(environmentId).slice(first);
      return new Set(steps.map(({ key }) => key).filter((key) => key !== undefined));
    },
  };
}

function stepOf(flagId: string, before: TakenEntry["before"], after: TakenEntry["value"]): Step {
  return {
    key: keyOf(after) ?? keyOf(before),
    before: before && stampOf(before, flagId),
    after: stampOf(after, flagId),
  };
}

/** Returns the key of an entry of a flag; undefined for a deletion. */
function keyOf(entry: TakenEntry["before"]): string | undefined {
  return entry === undefined || isDeleted(entry) || entry.kind !== "flag" ? undefined : entry.key;
}

function statesBefore(present: ConfigurationState, steps: readonly Step[]): EarlierStates {
  const state = present.copy();
  const states = new Map<string, number>();
  for (const [index, { before, after }] of [...steps.entries()].toReversed()) {
    state.change(after, before);
    const { hash } = state.tag;
    if (!states.has(hash)) states.set(hash, index);
  }
  return states;
}

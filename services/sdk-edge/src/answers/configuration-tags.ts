import {
  type EnvironmentFlags,
  existingFlag,
  isDeleted,
  type Snapshot,
  type Stamped,
  type TakenEntry,
} from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import { DigestSum, shortHash } from "./digests.ts";

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
    key: (existingFlag(after) ?? existingFlag(before))?.key,
    before: before && stampOf(before, flagId),
    after: stampOf(after, flagId),
  };
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

/**
 * Identifies a state of an environment's flags. A different set of flags, or different settings of one flag, has a
 * different tag. Equal states have the same tag on every edge. Events contain the tag, and the official OpenFeature
 * providers send it back when they refetch. An edge can therefore tell whether it has received the change that the
 * client refers to. For this comparison the tag begins with the time of the newest change: `<milliseconds in base
 * 36>-<hash>`.
 */
export type ConfigurationTag = { text: string; newestMs: number; hash: string };

const shape = /^([0-9a-z]{1,9})-([A-Za-z0-9_-]{22})$/;

/** The properties of a flag that its environment's tag depends on. */
type StampedFlag = {
  flagId: string;
  version: number;
  committedAt: string;
  deleted: boolean;
};

function stampOf(entry: Stamped, flagId: string): StampedFlag {
  const { version, committed_at: committedAt } = entry;
  return { flagId, version, committedAt, deleted: isDeleted(entry) };
}

/** The state of an environment's flags that a tag identifies. A change costs two digests. */
class ConfigurationState {
  readonly #live: DigestSum;
  #newestMs: number;

  constructor(live = new DigestSum(), newestMs = 0) {
    this.#live = live;
    this.#newestMs = newestMs;
  }

  /** Replaces a flag. `before` is undefined for a new flag, `after` for a removed one. */
  change(before: StampedFlag | undefined, after: StampedFlag | undefined): void {
    // Edges remove deletions at different times. The hash must therefore be the same for a deleted flag and a flag that
    // never existed.
    if (before?.deleted === false) this.#live.remove(textOf(before));
    if (after?.deleted === false) this.#live.add(textOf(after));
    if (after !== undefined)
      this.#newestMs = Math.max(this.#newestMs, Date.parse(after.committedAt));
  }

  copy(): ConfigurationState {
    return new ConfigurationState(this.#live.copy(), this.#newestMs);
  }

  get tag(): ConfigurationTag {
    const hash = shortHash(this.#live.digest().toString("base64url"));
    return { text: `${this.#newestMs.toString(36)}-${hash}`, newestMs: this.#newestMs, hash };
  }
}

function textOf({ flagId, version, committedAt }: StampedFlag): string {
  return `${flagId} ${version} ${committedAt}`;
}

export function configurationStateOf(
  environment: EnvironmentFlags | undefined,
): ConfigurationState {
  const state = new ConfigurationState();
  for (const [flagId, entry] of environment?.flags ?? [])
    state.change(undefined, stampOf(entry, flagId));
  return state;
}

/** Parses a tag; undefined if the text is not a tag. */
export function parseConfigurationTag(text: string): ConfigurationTag | undefined {
  const [, newest, hash] = shape.exec(text) ?? [];
  if (newest === undefined || hash === undefined) return undefined;
  return { text, newestMs: Number.parseInt(newest, 36), hash };
}

/**
 * Returns whether a client may have received a change that has not arrived at an edge with this state.
 *
 * The times in tags are those of the processes that committed the changes. They increase for each flag. But two flags
 * can change in the same millisecond, or through replicas whose clocks differ. So a tag that is slightly older may
 * still be of a later change. A tag too far ahead of this process's clock comes from no edge, and waiting for a change
 * would not help.
 */
export function mayBeNewer(
  theirs: ConfigurationTag,
  { present, nowMs }: { present: ConfigurationTag; nowMs: number },
): boolean {
  if (theirs.hash === present.hash) return false;
  return (
    theirs.newestMs >= present.newestMs - replicaSkewMs && theirs.newestMs <= nowMs + clockSkewMs
  );
}

/** Maximum difference between the clocks of two management processes. */
const replicaSkewMs = 1_000;

/** Maximum difference between the clocks of management and of an edge. */
const clockSkewMs = 5_000;

import {
  type EnvironmentFlags,
  existingFlag,
  isDeleted,
  type Snapshot,
  type Stamped,
  type TakenEntry,
} from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import { type ChangedRules, changedRules } from "./changed-rules.ts";
import { DigestSum, shortHash } from "./digests.ts";
import type { EnvironmentView } from "./environment-view.ts";
import type { ViewChange } from "./environment-views.ts";
import { type Links, noLinks } from "./linked-flags.ts";

/**
 * The current configuration tag of each environment and the tags of its recent states. A client with one of the recent
 * tags, which it received from another edge, does not wait, because this edge has a later state.
 *
 * The last changes are kept with the flag before and after each. The tags of recent states are calculated backwards
 * from the current one, only for a client whose tag is not the current one. All edges apply changes in the same order,
 * but an edge may apply several together. Undoing one change at a time finds every state that any edge can have had.
 */
export type ConfigurationTags = {
  /** Applies every update of the snapshot in order, after the views have applied it. */
  follow(update: SnapshotUpdate, viewChanges?: readonly ViewChange[]): void;
  /** Applies changes of views without an update of the snapshot. */
  viewsChanged(changes: readonly ViewChange[]): void;
  of(environmentId: string): ConfigurationTag;
  /** Returns whether this edge is in the state with this tag, or has recently been in it. */
  includes(environmentId: string, tag: ConfigurationTag): boolean;
  /**
   * Returns the keys of the flags and audiences that were changed, created or deleted after the state with this tag;
   * undefined if the state is unknown.
   */
  changedSince(environmentId: string, tag: ConfigurationTag): RulesSince | undefined;
};

type RulesSince = { readonly [Kind in keyof ChangedRules]: ReadonlySet<string> };

/** A change of a flag or of what flags use: the texts that are replaced in the state. */
type Step = {
  readonly changed: ChangedRules;
  readonly before: Contents;
  readonly after: Contents;
};

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

export function createConfigurationTags(
  viewOf: (environmentId: string) => Pick<EnvironmentView, "links"> = () => ({ links: noLinks }),
): ConfigurationTags {
  let snapshot: Snapshot | undefined;
  const recent = createRecentStates((environmentId) => {
    const environment = snapshot?.environments.get(environmentId);
    return configurationStateOf(environment, viewOf(environmentId).links);
  });

  function viewsChanged(changes: readonly ViewChange[]): void {
    for (const { environmentId, before, after } of changes)
      if (before.links !== after.links)
        recent.note(environmentId, {
          changed: changedRules(before, after),
          before: contentsOfLinks(before.links, after.links),
          after: contentsOfLinks(after.links, before.links),
        });
  }

  return {
    follow(update, viewChanges = []) {
      snapshot = update.snapshot;
      if (update.isReplacement) {
        for (const environmentId of update.changed.environments) recent.forget(environmentId);
        for (const { environmentId } of viewChanges) recent.forget(environmentId);
        return;
      }
      for (const { address, before, value } of update.taken)
        if (address.kind === "flag")
          recent.note(address.environmentId, stepOf(address.flagId, before, value));
      viewsChanged(viewChanges);
    },

    viewsChanged,

    of: recent.tagOf,

    includes: (environmentId, tag) => recent.stepsSince(environmentId, tag) !== undefined,

    changedSince(environmentId, tag) {
      const steps = recent.stepsSince(environmentId, tag);
      return (
        steps && {
          flags: new Set(steps.flatMap(({ changed }) => changed.flags)),
          audiences: new Set(steps.flatMap(({ changed }) => changed.audiences)),
        }
      );
    },
  };
}

/** The current state and the last changes of each environment. `stateOf` calculates a state that is not known yet. */
function createRecentStates(stateOf: (environmentId: string) => ConfigurationState) {
  const stepsOf = new Map<string, Step[]>();
  const presentOf = new Map<string, Present>();

  function present(environmentId: string): Present {
    let known = presentOf.get(environmentId);
    if (known === undefined) {
      known = { state: stateOf(environmentId), tag: undefined, earlierStates: undefined };
      presentOf.set(environmentId, known);
    }
    return known;
  }

  function tagOf(environmentId: string): ConfigurationTag {
    const known = present(environmentId);
    known.tag ??= known.state.tag;
    return known.tag;
  }

  return {
    tagOf,

    note(environmentId: string, step: Step): void {
      const steps = stepsOf.get(environmentId) ?? [];
      stepsOf.set(environmentId, steps);
      steps.push(step);
      if (steps.length > maxSteps) steps.shift();
      const known = presentOf.get(environmentId);
      if (known === undefined) return;
      known.state.replace(step.before, step.after);
      known.tag = undefined;
      known.earlierStates = undefined;
    },

    forget(environmentId: string): void {
      stepsOf.delete(environmentId);
      presentOf.delete(environmentId);
    },

    /** Returns the steps after the state with this tag; undefined if the state is unknown. */
    stepsSince(environmentId: string, { hash }: ConfigurationTag): readonly Step[] | undefined {
      if (hash === tagOf(environmentId).hash) return [];
      const known = present(environmentId);
      const steps = stepsOf.get(environmentId) ?? [];
      known.earlierStates ??= statesBefore(known.state, steps);
      const first = known.earlierStates.get(hash);
      return first === undefined ? undefined : steps.slice(first);
    },
  };
}

function stepOf(flagId: string, before: TakenEntry["before"], after: TakenEntry["value"]): Step {
  const key = (existingFlag(after) ?? existingFlag(before))?.key;
  return {
    changed: { flags: key === undefined ? [] : [key], audiences: [] },
    before: before === undefined ? nothing : contentsOfFlag(before, flagId),
    after: contentsOfFlag(after, flagId),
  };
}

function statesBefore(present: ConfigurationState, steps: readonly Step[]): EarlierStates {
  const state = present.copy();
  const states = new Map<string, number>();
  for (const [index, { before, after }] of [...steps.entries()].toReversed()) {
    state.replace(after, before);
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

/** A part of the state of an environment, as texts of a set, and the time of its newest change. */
type Contents = { readonly texts: readonly string[]; readonly newestMs: number };

const nothing: Contents = { texts: [], newestMs: 0 };

/**
 * Edges remove deletions at different times. A deleted flag therefore has no text, as if it had never existed.
 */
function contentsOfFlag(entry: Stamped, flagId: string): Contents {
  const { version, committed_at: committedAt } = entry;
  return {
    texts: isDeleted(entry) ? [] : [`${flagId} ${version} ${committedAt}`],
    newestMs: Date.parse(committedAt),
  };
}

/** Returns the contents of links that others do not have. */
function contentsOfLinks({ texts, newestMs }: Links, others = noLinks): Contents {
  return { texts: [...texts].filter((text) => !others.texts.has(text)), newestMs };
}

/** The state of an environment's flags that a tag identifies. A change costs one digest for each text. */
class ConfigurationState {
  readonly #live: DigestSum;
  #newestMs: number;

  constructor(live = new DigestSum(), newestMs = 0) {
    this.#live = live;
    this.#newestMs = newestMs;
  }

  replace(before: Contents, after: Contents): void {
    for (const text of before.texts) this.#live.remove(text);
    for (const text of after.texts) this.#live.add(text);
    this.#newestMs = Math.max(this.#newestMs, after.newestMs);
  }

  copy(): ConfigurationState {
    return new ConfigurationState(this.#live.copy(), this.#newestMs);
  }

  get tag(): ConfigurationTag {
    const hash = shortHash(this.#live.digest().toString("base64url"));
    return { text: `${this.#newestMs.toString(36)}-${hash}`, newestMs: this.#newestMs, hash };
  }
}

export function configurationStateOf(
  environment: EnvironmentFlags | undefined,
  links = noLinks,
): ConfigurationState {
  const state = new ConfigurationState();
  for (const [flagId, entry] of environment?.flags ?? [])
    state.replace(nothing, contentsOfFlag(entry, flagId));
  state.replace(nothing, contentsOfLinks(links));
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

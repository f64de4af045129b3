import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import { DigestSum } from "./digest-sum.ts";
import { shortHash } from "./short-hash.ts";

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
export type StampedFlag = {
  flagId: string;
  version: number;
  committedAt: string;
  deleted: boolean;
};

export function stampOf(entry: Stamped, flagId: string): StampedFlag {
  const { version, committed_at: committedAt } = entry;
  return { flagId, version, committedAt, deleted: isDeleted(entry) };
}

type Stamped = { version: number; committed_at: string };

/** The state of an environment's flags that a tag identifies. A change costs two digests. */
export class ConfigurationState {
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

/** Maximum time by which the clock of a management process is ahead of an edge's, on another machine. */
const clockSkewMs = 5_000;

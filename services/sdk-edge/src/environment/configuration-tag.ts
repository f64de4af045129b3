import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import { DigestSum } from "./digest-sum.ts";
import { shortHash } from "./short-hash.ts";

/**
 * Names a state of an environment's flags: other flags, or other settings of one, have another tag, and
 * the same on every edge. Events carry it, and the official providers send it back when they refetch;
 * so an edge that is asked can tell whether it has heard of the change that the caller was told of.
 * For that the tag begins with the time of the newest change: `<milliseconds in base 36>-<hash>`.
 */
export type ConfigurationTag = { text: string; newestMs: number; hash: string };

const shape = /^([0-9a-z]{1,9})-([A-Za-z0-9_-]{22})$/;

/** What a tag says of a flag. */
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

/** A state of an environment's flags as a tag names it. A change costs two digests. */
export class ConfigurationState {
  readonly #live: DigestSum;
  #newestMs: number;

  constructor(live = new DigestSum(), newestMs = 0) {
    this.#live = live;
    this.#newestMs = newestMs;
  }

  /** Replaces a flag. `before` is undefined for a new flag, `after` for a removed one. */
  change(before: StampedFlag | undefined, after: StampedFlag | undefined): void {
    // Deletions are forgotten at different times, so a deleted flag counts like one that never was.
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

/** Undefined for what was not made here. */
export function parseConfigurationTag(text: string): ConfigurationTag | undefined {
  const [, newest, hash] = shape.exec(text) ?? [];
  if (newest === undefined || hash === undefined) return undefined;
  return { text, newestMs: Number.parseInt(newest, 36), hash };
}

/**
 * Whether a caller may have been told of a change that has not arrived at an edge with this state.
 *
 * The times are those of the processes that committed the changes. They grow for each flag, but two
 * flags may have changed in the same millisecond, or through replicas whose clocks differ; so only
 * what is older by more than that is surely no news. What lies further ahead of this process's own
 * clock was not told by any edge, and waiting would not bring it.
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

/** How far the clocks of two management processes may be apart. */
const replicaSkewMs = 1_000;

/** How far the clock of a management process may be ahead of an edge's, on another machine. */
const clockSkewMs = 5_000;

import { createHash } from "node:crypto";
import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import { shortHash } from "./short-hash.ts";

/**
 * Names a state of an environment's flags: other flags, or other settings of one, have another tag, and
 * the same on every edge. Events carry it, and the official providers send it back when they refetch;
 * so an edge that is asked can tell whether it has heard of the change that the caller was told of.
 * For that the tag begins with the time of the newest change: `<milliseconds in base 36>-<hash>`.
 */
export type ConfigurationTag = { text: string; newestMs: number; hash: string };

const shape = /^([0-9a-z]{1,9})-([A-Za-z0-9_-]{22})$/;

const tags = new WeakMap<EnvironmentFlags, ConfigurationTag>();

export function configurationTagOf(environment: EnvironmentFlags | undefined): ConfigurationTag {
  if (environment === undefined) return tagOfNothing;
  let tag = tags.get(environment);
  if (tag === undefined) {
    tag = tagOfFlags(stampsOf(environment));
    tags.set(environment, tag);
  }
  return tag;
}

function stampsOf({ flags }: EnvironmentFlags): StampedFlag[] {
  return Array.from(flags, ([flagId, entry]) => stampOf(entry, flagId));
}

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

export function tagOfFlags(flags: Iterable<StampedFlag>): ConfigurationTag {
  const states: string[] = [];
  let newestMs = 0;
  for (const { flagId, version, committedAt, deleted } of flags) {
    newestMs = Math.max(newestMs, Date.parse(committedAt));
    // Deletions are forgotten sooner here and later there; what counts is that the flag is gone.
    if (!deleted) states.push(`${flagId} ${version} ${committedAt}`);
  }
  const digest = createHash("sha256").update(states.sort().join("\n")).digest("base64url");
  const hash = shortHash(digest);
  return { text: `${newestMs.toString(36)}-${hash}`, newestMs, hash };
}

const tagOfNothing = tagOfFlags([]);

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
export function mayBeNews(
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

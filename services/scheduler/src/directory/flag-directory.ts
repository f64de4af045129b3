import { createdAtMsOf, type FlagEntry, type Tombstone } from "@halyard/contracts";

/**
 * Which flags exist in which environments, in memory: fed from the snapshot, so that nobody is asked
 * when a schedule is set. Versions decide, not arrival: a flag that was deleted stays deleted whatever
 * older news of it turns up.
 */
export type FlagPlace = { flagId: string; environmentId: string };
export type KnownFlag = { projectId: string };

/** Finds a flag in an environment, if it exists. */
export type FindFlag = (place: FlagPlace) => Promise<KnownFlag | undefined>;

export type FlagDirectory = {
  /**
   * Takes a whole snapshot's flags in place of what is known. `unreadable` are those whose entries are
   * there and could not be read.
   */
  replace(
    entries: Iterable<readonly [FlagPlace, FlagEntry | Tombstone]>,
    unreadable: readonly FlagPlace[],
  ): void;
  /** Takes one entry, unless a newer one is known. Answers whether it was news. */
  apply(place: FlagPlace, entry: FlagEntry | Tombstone): boolean;
  /** What is known of a flag: an entry that cannot be read is one of a flag that exists, or did. */
  standing(place: FlagPlace): "exists" | "deleted" | "unreadable" | "unknown";
  /** The same at once, or after a moment where the flag is so new that we may not have heard of it. */
  find: FindFlag;
};

/**
 * What was just created works on every service within a second. Management's ids say when they were
 * made, so only a flag or an environment that is younger than this is waited for; an invented id costs
 * a look.
 */
const newMs = 5_000;
const newPatienceMs = 1_000;

/** Without a flag: it was deleted. */
type Stored = { version: number; flag: KnownFlag | undefined };

export function createFlagDirectory(options: {
  now: () => number;
  /** How long what is new is waited for. */
  patienceMs?: number;
}): FlagDirectory {
  const { patienceMs = newPatienceMs } = options;
  let stored = new Map<string, Stored>();
  /** Flags that were heard of, in whatever environment. */
  let heardOf = new Set<string>();
  let unreadableKeys = new Set<string>();
  const awaited = new Map<string, Set<() => void>>();

  function lookUp(place: FlagPlace): KnownFlag | undefined {
    return stored.get(keyOf(place))?.flag;
  }

  /** Whether the flag is so new, or the environment, that we may not have heard of it. */
  function mayTurnUp({ flagId, environmentId }: FlagPlace): boolean {
    const now = options.now();
    return (isNew(flagId, now) && !heardOf.has(flagId)) || isNew(environmentId, now);
  }

  /** Resolves when the flag turns up, or when it is too late. */
  function appears(place: FlagPlace): Promise<void> {
    const key = keyOf(place);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiters = awaited.get(key) ?? new Set();
    awaited.set(key, waiters.add(resolve));
    const timer = setTimeout(resolve, patienceMs);
    return promise.finally(() => {
      clearTimeout(timer);
      waiters.delete(resolve);
      if (waiters.size === 0) awaited.delete(key);
    });
  }

  return {
    replace(entries, unreadable) {
      const projects = new Map<string, KnownFlag>();
      stored = new Map();
      heardOf = new Set();
      for (const [place, entry] of entries) {
        stored.set(keyOf(place), storedOf(entry, projects));
        heardOf.add(place.flagId);
      }
      unreadableKeys = new Set(unreadable.map(keyOf));
      for (const waiters of awaited.values()) for (const resolve of waiters) resolve();
    },
    apply(place, entry) {
      const key = keyOf(place);
      const known = stored.get(key);
      if (known !== undefined && known.version >= entry.version) return false;
      stored.set(key, storedOf(entry, new Map()));
      heardOf.add(place.flagId);
      for (const resolve of awaited.get(key) ?? []) resolve();
      return true;
    },
    standing(place) {
      const key = keyOf(place);
      const known = stored.get(key);
      if (known !== undefined) return known.flag === undefined ? "deleted" : "exists";
      return unreadableKeys.has(key) ? "unreadable" : "unknown";
    },
    async find(place) {
      if (!stored.has(keyOf(place)) && mayTurnUp(place)) await appears(place);
      return lookUp(place);
    },
  };
}

function keyOf({ flagId, environmentId }: FlagPlace): string {
  return `${environmentId}.${flagId}`;
}

/** A hundred thousand flags of a few hundred projects need each project's id only once. */
function storedOf(entry: FlagEntry | Tombstone, projects: Map<string, KnownFlag>): Stored {
  if ("deleted" in entry) return { version: entry.version, flag: undefined };
  const projectId = entry.project_id;
  const flag = projects.get(projectId) ?? { projectId };
  projects.set(projectId, flag);
  return { version: entry.version, flag };
}

function isNew(id: string, nowMs: number): boolean {
  return Math.abs(nowMs - createdAtMsOf(id)) < newMs;
}

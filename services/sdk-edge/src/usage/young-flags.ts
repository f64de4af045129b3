import { isYoung } from "@halyard/contracts";
import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import type { SnapshotChange } from "../snapshot/snapshot-holder.ts";

/**
 * The flags of each environment that were created in the present hour or after it: what happened in the
 * hour does not all count for them. All flags of an environment are looked through when it is asked
 * for in this hour for the first time, or was read anew; after that its list follows what changes.
 * A list itself never changes, so that who holds one knows which flags there were.
 */
export type YoungFlags = {
  /** From now on flags are young by this hour. */
  enter(hourBeganMs: number): void;
  /** The young flags of an environment, oldest first. */
  of(environmentId: string): readonly string[];
  follow(change: Pick<SnapshotChange, "changed" | "whole" | "taken">): void;
};

/**
 * So many young flags of an environment count by themselves, the first that were created; those beyond
 * begin to count with the next hour. Each of them is written and sent twice a second while somebody
 * asks, so that without a bound one tenant who creates flags by the ten thousand would hold up the edge
 * for all. People do not create a thousand in an hour; an import may.
 */
export const mostYoungFlags = 1_000;

export function createYoungFlags(options: {
  /** The present flags of an environment. */
  flagsOf: (environmentId: string) => EnvironmentFlags | undefined;
}): YoungFlags {
  let hourBeganMs = 0;
  let lists = new Map<string, readonly string[]>();

  /** The lists that these entries change, once each, however many entries there are. */
  function drafts(taken: SnapshotChange["taken"]): Map<string, Set<string>> {
    const drafted = new Map<string, Set<string>>();
    for (const { address, value } of taken) {
      if (address.kind !== "flag" || !isYoung(address.flagId, hourBeganMs)) continue;
      const { environmentId, flagId } = address;
      const list = lists.get(environmentId);
      if (list === undefined) continue;
      const draft = drafted.get(environmentId) ?? new Set(list);
      drafted.set(environmentId, draft);
      if (isDeleted(value)) draft.delete(flagId);
      else draft.add(flagId);
    }
    return drafted;
  }

  return {
    enter(beganMs) {
      hourBeganMs = beganMs;
      lists = new Map();
    },
    of(environmentId) {
      let list = lists.get(environmentId);
      if (list === undefined) {
        list = findYoung(options.flagsOf(environmentId), hourBeganMs);
        lists.set(environmentId, list);
      }
      return list;
    },
    follow({ changed, whole, taken }) {
      if (whole) for (const environmentId of changed.environments) lists.delete(environmentId);
      else
        for (const [environmentId, ids] of drafts(taken)) lists.set(environmentId, first([...ids]));
    },
  };
}

function findYoung(
  environment: EnvironmentFlags | undefined,
  hourBeganMs: number,
): readonly string[] {
  if (environment === undefined) return none;
  // Ids that begin with the time are in its order. All but a few are ruled out by one comparison.
  const lowest = lowestIdAt(hourBeganMs);
  let highest = aboveAllIds;
  let ids: string[] = [];
  for (const [flagId, flag] of environment.flags) {
    if (flagId < lowest || flagId > highest) continue;
    if (isDeleted(flag) || !isYoung(flagId, hourBeganMs)) continue;
    ids.push(flagId);
    if (ids.length < 2 * mostYoungFlags) continue;
    ids = first(ids);
    highest = ids.at(-1) ?? aboveAllIds;
  }
  return first(ids);
}

const none: string[] = [];
const aboveAllIds = "g";

/** Those that were created first. */
function first(ids: string[]): string[] {
  return ids.length === 0 ? none : ids.sort().slice(0, mostYoungFlags);
}

/** The beginning of the first id that could be made at that time. */
function lowestIdAt(instantMs: number): string {
  const digits = instantMs.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}

import type { FlagEntry } from "@halyard/contracts";
import { type CompiledFlag, compile } from "@halyard/evaluation";
import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";

/**
 * The flags of an environment, ready to be evaluated, in the order of their keys. A flag is compiled
 * once: an entry of the snapshot never changes, so what was made of it holds for as long as it does,
 * and two environments' views share what did not change between them, which shows by identity.
 */
export function compiledFlagsOf(environment: EnvironmentFlags | undefined): CompiledFlags {
  const weighed = flagsInOrder(environment).map(weighedFlagOf);
  const weight = weighed.reduce((sum, flag) => sum + flag.weight, 0);
  return { identified: weighed, isCostly: weight > costlyWeight };
}

export type CompiledFlags = {
  identified: readonly { id: string; flag: CompiledFlag }[];
  /** Whether the rules of all flags together may take more than some tens of milliseconds. */
  isCostly: boolean;
};

/** In conditions: five thousand that look through a text of 4 KiB take a tenth of a second at worst. */
const costlyWeight = 5_000;

/** An expression takes at worst as long as so many other conditions. */
const expressionWeight = 500;

type WeighedFlag = { id: string; flag: CompiledFlag; weight: number };

const weighedFlags = new WeakMap<FlagEntry, WeighedFlag>();

function weighedFlagOf(entry: FlagEntry): WeighedFlag {
  let weighed = weighedFlags.get(entry);
  if (weighed === undefined) {
    const flag = compile(entry);
    weighed = {
      id: entry.flag_id,
      flag,
      weight: flag.constant === undefined ? weightOf(entry) : 0,
    };
    weighedFlags.set(entry, weighed);
  }
  return weighed;
}

function weightOf({ targeting_rules }: FlagEntry): number {
  let weight = 0;
  for (const { conditions } of targeting_rules)
    for (const { operator } of conditions)
      weight += operator === "matches_regex" ? expressionWeight : 1;
  return weight;
}

/** The flag with a key, as it is set. */
export function findFlag(
  environment: EnvironmentFlags | undefined,
  key: string,
): FlagEntry | undefined {
  return flagsInOrder(environment).find((flag) => flag.key === key);
}

/**
 * The flags that exist, by key. A key belongs to one flag at a time, but when one was deleted and made
 * anew, its new flag may arrive before the deletion of the old one. The later of the two counts; ids
 * grow with time, so that is the one with the greater id.
 */
function flagsInOrder(environment: EnvironmentFlags | undefined): FlagEntry[] {
  const byKey = new Map<string, FlagEntry>();
  for (const flag of environment?.flags.values() ?? []) {
    if (isDeleted(flag)) continue;
    const rival = byKey.get(flag.key);
    if (rival === undefined || rival.flag_id < flag.flag_id) byKey.set(flag.key, flag);
  }
  return [...byKey.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}

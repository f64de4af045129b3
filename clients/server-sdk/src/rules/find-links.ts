import type { ReferredKeys } from "@halyard/evaluation";
import type { Audience } from "./audiences.ts";
import type { Flag } from "./flag.ts";
import { Links } from "./links.ts";

/** The reason why a flag cannot be linked. */
export type Missing = {
  /** Part of a sentence, for the log. */
  readonly problem: string;
  /** True if only chunks of lists are missing, which the client loads. */
  readonly isWaiting: boolean;
};

/** The audiences and flags in memory. A flag that is withheld itself is `Missing`. */
type Known = {
  audienceOf(key: string): Audience | undefined;
  flagOf(key: string): Flag | Missing | undefined;
};

/**
 * Maximum number of flags in a chain of requirements. The service allows 10. Each flag of a chain calls the next one, so
 * the limit bounds the stack.
 */
const maxChain = 64;

/** Finds everything that a flag refers to. Something unknown has priority over chunks that are loaded. */
export function findLinks({ audiences, flags }: ReferredKeys, known: Known): Links | Missing {
  const foundAudiences = new Map<string, Audience>();
  const foundFlags = new Map<string, Flag>();
  let waiting: Missing | undefined;
  for (const key of audiences) {
    const audience = known.audienceOf(key);
    if (audience === undefined) return unknown(`the audience ${quoted(key)} is unknown`);
    const { rules, chunks } = audience;
    if (rules.unknown !== undefined)
      return unknown(`the audience ${quoted(key)} uses ${quoted(rules.unknown)}, which is unknown`);
    if (chunks === undefined)
      waiting = { problem: `the list of ${quoted(key)} is incomplete`, isWaiting: true };
    foundAudiences.set(key, audience);
  }
  for (const key of flags) {
    const flag = known.flagOf(key);
    if (flag === undefined) return unknown(`the required flag ${quoted(key)} is unknown`);
    if (!("problem" in flag)) {
      if (flag.links.chain >= maxChain) return unknown("its chain of requirements is too long");
      foundFlags.set(key, flag);
    } else if (flag.isWaiting) waiting = { problem: flag.problem, isWaiting: true };
    else return unknown(`the required flag ${quoted(key)} counts as not found`);
  }
  return waiting ?? new Links(foundAudiences, foundFlags);
}

function unknown(problem: string): Missing {
  return { problem, isWaiting: false };
}

/** The service sends keys, but damaged rules can contain anything. */
function quoted(key: unknown): string {
  return JSON.stringify(String(key).slice(0, 128));
}

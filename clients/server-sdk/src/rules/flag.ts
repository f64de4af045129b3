import { isDeepStrictEqual } from "node:util";
import { type CompiledFlag, compile } from "@halyard/evaluation";
import type { FlagRules } from "./parse-rules.ts";

/**
 * A flag in memory. It is compiled at its first evaluation, because an application with thousands of flags uses few of
 * them in one process, and starts faster.
 */
export class Flag {
  readonly rules: FlagRules;
  /** Evaluations since the last usage report, by value. */
  on = 0;
  off = 0;
  #compiled: CompiledFlag | undefined = undefined;

  constructor(rules: FlagRules) {
    this.rules = rules;
  }

  get compiled(): CompiledFlag {
    this.#compiled ??= compile(this.rules);
    return this.#compiled;
  }
}

/** Returns whether two states of a flag evaluate alike. The version also rises with changes of names, for example. */
export function haveSameSettings(a: FlagRules, b: FlagRules): boolean {
  if (a.enabled !== b.enabled || a.rollout_percentage !== b.rollout_percentage) return false;
  if (a.targeting_rules.length === 0 && b.targeting_rules.length === 0) return true;
  return isDeepStrictEqual(a.targeting_rules, b.targeting_rules);
}

import { isDeepStrictEqual } from "node:util";
import { type CompiledFlag, compile } from "@halyard/evaluation";
import { type FlagRules, memberChecks } from "./parse-rules.ts";

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
  return settings.every((name) => a[name] === b[name] || isDeepStrictEqual(a[name], b[name]));
}

const { version: _, ...settingChecks } = memberChecks;
const settings = Object.keys(settingChecks) as (keyof typeof settingChecks)[];

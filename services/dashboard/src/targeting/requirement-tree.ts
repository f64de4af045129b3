import type { Requirement } from "../api/schema.d.ts";
import { type ListedFlag, stateIn } from "../flags/flag-search.ts";

/** A required flag, and the flags that it requires itself. */
export type RequiredFlag = {
  readonly requirement: Requirement;
  /** The position of its switch, or undefined if the flag is unknown. */
  readonly enabled: boolean | undefined;
  readonly requires: readonly RequiredFlag[];
  /** True if the tree shows this flag before, so that what it requires is not repeated. */
  readonly isRepeated: boolean;
};

/** Returns the tree of what requirements lead to in an environment. A flag that occurs several times is expanded once. */
export function requirementTree(
  flags: readonly ListedFlag[],
  environmentId: string,
  requires: readonly Requirement[],
): readonly RequiredFlag[] {
  const states = new Map(flags.map((flag) => [flag.key, stateIn(flag, environmentId)]));
  const seen = new Set<string>();
  const expand = (requirement: Requirement): RequiredFlag => {
    const state = states.get(requirement.flag);
    const isRepeated = seen.has(requirement.flag);
    seen.add(requirement.flag);
    const further = isRepeated ? [] : (state?.requires ?? []);
    return { requirement, enabled: state?.enabled, requires: further.map(expand), isRepeated };
  };
  return requires.map(expand);
}

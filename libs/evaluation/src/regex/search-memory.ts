import type { RE2JS } from "re2js";

export type SearchMemory = {
  /** A search in this expression that stays within its allowance. */
  readonly searchIn: (regex: RE2JS) => (text: string) => boolean;
};

/**
 * The engine remembers, per expression, the states that its searches have been through: that is what
 * makes a repeated search fast, and what would grow to 8 MiB per expression, for as long as its flag
 * lives. Here each expression gets a small allowance, and all of them together a larger one, by the
 * engine's own reckoning. When that is used up, all forget what they know and begin again; nothing
 * changes but the speed of what follows.
 *
 * Expressions are known here weakly: one whose flag is gone is gone as well, with its program, which may
 * be far larger than its states. Until the next forgetting its states still count.
 *
 * A small allowance also bounds time: making a state is slower than searching without, so an expression
 * that goes through ever new states is soon searched without.
 */
export function createSearchMemory(bounds: {
  allowanceBytes: number;
  togetherBytes: number;
}): SearchMemory {
  let remembering: WeakRef<States>[] = [];
  let usedBytes = 0;
  let forgettings = 0;

  function forgetAll(): void {
    for (const each of remembering) each.deref()?.clearCache();
    remembering = [];
    usedBytes = 0;
    forgettings += 1;
  }

  return {
    searchIn(regex) {
      const states = regex.re2().dfa;
      states.stateBudget = bounds.allowanceBytes;
      states.memBudget = bounds.allowanceBytes;
      const known = new WeakRef(states);
      let counted = 0;
      let countedSince = -1;
      return (text) => {
        const found = regex.test(text);
        if (countedSince !== forgettings) {
          countedSince = forgettings;
          counted = 0;
          remembering.push(known);
        }
        const used = states.stateBudget - states.memBudget;
        usedBytes += used - counted;
        counted = used;
        if (usedBytes > bounds.togetherBytes) forgetAll();
        return found;
      };
    },
  };
}

type States = ReturnType<RE2JS["re2"]>["dfa"];

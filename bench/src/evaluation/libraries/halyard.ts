import { type CompiledFlag, compile, contextOf } from "@halyard/evaluation";
import { flagState } from "../../targeting/targeted-flags.ts";
import type { LoadLibrary } from "./library.ts";

/**
 * Calls Halyard's library as the server SDK does. Each evaluation creates its context from a plain object. A constant
 * flag needs no context.
 */
export const loadHalyard: LoadLibrary = async (flags, users) => {
  const compiled = flags.map((flag) => compile(flagState(flag)));
  return {
    evaluateAll(user) {
      const context = contextOf(users[user]);
      let on = 0;
      for (const { constant, evaluate } of compiled)
        if ((constant ?? evaluate(context)).value) on += 1;
      return on;
    },
    evaluateOne(user, flag) {
      const { constant, evaluate } = compiled[flag] as CompiledFlag;
      return (constant ?? evaluate(contextOf(users[user]))).value;
    },
  };
};

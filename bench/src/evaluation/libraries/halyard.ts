import {
  compile,
  createContext,
  type EvaluationContext,
  readAttributes,
} from "@halyard/evaluation";
import { flagState } from "../../targeting/targeted-flags.ts";
import type { User } from "../../targeting/users.ts";
import type { LoadLibrary } from "./library.ts";

/**
 * Halyard's library. Users are plain objects as in a request's JSON; their validation and preparation is
 * measured.
 */
export const loadHalyard: LoadLibrary = async (flags, users) => {
  const compiled = flags.map((flag) => compile(flagState(flag)));
  return {
    evaluateAll(user) {
      const context = contextOf(users[user] as User);
      let on = 0;
      for (const flag of compiled) if (flag.evaluate(context).value) on += 1;
      return on;
    },
    evaluateOne(user, flag) {
      const context = contextOf(users[user] as User);
      return (compiled[flag] as (typeof compiled)[number]).evaluate(context).value;
    },
  };
};

function contextOf(user: User): EvaluationContext {
  const read = readAttributes(user, "reject");
  if (!read.ok) throw new Error(`invalid user in the benchmark: ${read.problem.expected}`);
  return createContext(read.attributes);
}

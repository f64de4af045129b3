import {
  contextOf,
  type EvaluationContext,
  emptyContext,
  ignoredAttributes,
} from "@halyard/evaluation";
import type { Log } from "./log.ts";

type ContextReader = (context: unknown) => EvaluationContext | undefined;

/**
 * Number of contexts whose attributes are checked for types that no rule can read. A mistake of the application is in
 * its first contexts, and checking every one would cost more than the evaluation.
 */
const checkedContexts = 1_000;

/**
 * Creates a function that prepares contexts of the application; undefined for a context that is not an object. It throws
 * only if the context does, as a getter can.
 */
export function createContextReader(log: Log): ContextReader {
  let unchecked = checkedContexts;

  function check(context: object): void {
    unchecked -= 1;
    const ignored = ignoredAttributes(context);
    if (ignored.length === 0) return;
    unchecked = 0;
    log.write(
      "warn",
      "Attributes of contexts are ignored. Expected a string, a number, a boolean, or an array of these.",
      { attributes: ignored.slice(0, 10) },
    );
  }

  return (context) => {
    if (context === undefined || context === null) return emptyContext;
    if (typeof context !== "object" || Array.isArray(context)) return undefined;
    if (unchecked > 0) check(context);
    return contextOf(context);
  };
}

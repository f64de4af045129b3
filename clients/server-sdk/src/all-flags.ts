import type { EvaluationContext } from "@halyard/evaluation";
import type { Client, Evaluated } from "./client.ts";
import type { Guards } from "./guards.ts";
import type { Flag } from "./rules/flag.ts";
import type { RuleSet } from "./rules/rule-set.ts";

/** Creates the methods that evaluate and count all flags for one context. */
export function createAllMethods(
  ruleSet: RuleSet,
  { withContext, guarded }: Guards,
): Pick<Client, "allFlags" | "allValues"> {
  /** Evaluates a flag. Returns undefined if its result depends on the context, which is invalid. */
  type Evaluate = <T>(
    constant: T | undefined,
    evaluate: (context: EvaluationContext) => T,
  ) => T | undefined;

  /** Returns the results of all flags by key, without those that are undefined. */
  function forAll<T>(
    context: unknown,
    resultOf: (flag: Flag, evaluate: Evaluate) => T | undefined,
  ): Record<string, T> {
    const prepared = withContext(context, (found) => found);
    const evaluateFor: Evaluate = (constant, evaluate) =>
      constant ?? (prepared === undefined ? undefined : guarded(() => evaluate(prepared)));
    const results: [string, T][] = [];
    for (const [key, flag] of ruleSet.flags) {
      const result = resultOf(flag, evaluateFor);
      if (result !== undefined) results.push([key, result]);
    }
    return Object.fromEntries(results);
  }

  function booleanOf(flag: Flag, evaluate: Evaluate): boolean | undefined {
    const outcome = evaluate(flag.compiled.constant, flag.compiled.evaluate);
    if (outcome !== undefined) flag.count(outcome.value);
    return outcome?.value;
  }

  function evaluatedOf(flag: Flag, evaluate: Evaluate): Evaluated | undefined {
    if (flag.typedAs === undefined) {
      const value = booleanOf(flag, evaluate);
      return value === undefined ? undefined : { value, variation: value ? "on" : "off" };
    }
    const { constantIndex, indexFor } = flag.variations;
    const index = evaluate(constantIndex, indexFor);
    if (index === undefined) return undefined;
    const value = flag.take(index) as Evaluated["value"] | undefined;
    return { value: value ?? null, variation: flag.variations.keyOf(index) };
  }

  return {
    allFlags: (context) =>
      forAll(context, (flag, evaluate) =>
        flag.typedAs !== undefined ? undefined : booleanOf(flag, evaluate),
      ),
    allValues: (context) => forAll(context, evaluatedOf),
  };
}

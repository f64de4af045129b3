import { explain, type Outcome } from "@halyard/evaluation";
import type { EvaluationEvents } from "@halyard/evaluation/events";
import { createAllMethods } from "./all-flags.ts";
import type { Evaluation, Evaluator, Explanation } from "./client.ts";
import { withEvents } from "./evaluation-events.ts";
import { createGuards } from "./guards.ts";
import {
  type EvaluatorOptions,
  type Failure,
  failureOf,
  reasonOfMissing,
} from "./missing-value.ts";
import { prerequisiteOf } from "./prerequisite.ts";
import type { Flag } from "./rules/flag.ts";
import { createTypedMethods } from "./typed-methods.ts";

/** Evaluates the flags in memory, and counts the evaluations of each flag for usage reports and, if wanted, for events. */
export function createEvaluator(options: EvaluatorOptions, events?: EvaluationEvents): Evaluator {
  const { ruleSet, log } = options;
  const guards = createGuards(log);
  const { withContext } = guards;

  /** Returns the outcome of a boolean flag and counts it; undefined if the context is invalid. */
  function outcomeOf(flag: Flag, context: unknown): Outcome | undefined {
    const { constant, evaluate } = flag.compiled;
    const outcome = constant ?? withContext(context, evaluate);
    if (outcome !== undefined) flag.count(outcome.value);
    return outcome;
  }

  const evaluator: Evaluator = {
    ...createTypedMethods(options, guards),
    ...createAllMethods(ruleSet, guards),
    isEnabled(key, context, fallback) {
      const flag = ruleSet.flags.get(key);
      if (flag === undefined || flag.typedAs !== undefined) {
        reasonOfMissing(key, "boolean", options);
        return fallback === true;
      }
      return outcomeOf(flag, context)?.value ?? fallback === true;
    },
    evaluate(key, context, fallback) {
      const flag = ruleSet.flags.get(key);
      if (flag === undefined || flag.typedAs !== undefined)
        return withoutOutcome(reasonOfMissing(key, "boolean", options), fallback);
      const outcome = outcomeOf(flag, context);
      if (outcome === undefined) return withoutOutcome("invalid_context", fallback);
      const { reason } = outcome;
      if (reason !== "prerequisite_failed") return outcome;
      return { ...outcome, ...prerequisiteOf(flag, { reason, context }, guards) };
    },
    explain(key, context): Explanation | undefined {
      const flag = ruleSet.flags.get(key);
      if (flag === undefined) return undefined;
      const explanation = withContext(context, (prepared) =>
        explain(flag.compiled, prepared, flag.links.references),
      );
      if (explanation?.served === undefined) return explanation as Explanation | undefined;
      const { index, ...served } = explanation.served;
      return { ...explanation, served: { variation: flag.variations.keyOf(index), ...served } };
    },
    versionOf: (key) => ruleSet.flags.get(key)?.version,
  };
  return events === undefined ? evaluator : withEvents(evaluator, { ruleSet, guards, events });
}

function withoutOutcome(reason: Failure, fallback: boolean | undefined): Evaluation {
  return { value: fallback === true, variation: undefined, ...failureOf(reason) };
}

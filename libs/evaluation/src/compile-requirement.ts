import type {
  CompiledCondition,
  CompiledFlag,
  CompiledRequirement,
  Evaluation,
} from "./compiled.ts";
import { type EvaluationContext, emptyContext } from "./context.ts";
import { evaluateInSteps } from "./evaluate-in-steps.ts";
import type { Requirement } from "./flag-state.ts";
import { LastResult, type Pass } from "./last-result.ts";
import type { Outcome } from "./outcome.ts";

/** Compiles a requirement. A malformed one is never met. */
export function compileRequirement(
  requirement: Requirement,
  required: CompiledFlag,
): CompiledRequirement {
  const isMet = compileIsMet(requirement.is, required);
  // With a constant outcome, the variation is constant, too.
  const constant = required.constant === undefined ? undefined : isMet.of(emptyContext);
  const condition = (wanted: boolean): CompiledCondition => ({
    canHold: constant === undefined || constant === wanted,
    alwaysHolds: constant === wanted,
    holds: (context) => isMet.of(context) === wanted,
    sameAs: undefined,
    obstacle: () => undefined,
    prepare: isMet.inSteps,
  });
  return { requirement, required, constant, met: condition(true), unmet: condition(false) };
}

/** The last results of a flag that others require. All of these share them. */
type LastResults = {
  readonly outcomes: LastResult<Outcome>;
  /** Only lists of variations need these, which cost an object for each context. */
  readonly evaluations: LastResult<Evaluation>;
};

export function lastResultsOf(flag: CompiledFlag): LastResults {
  let results = resultsByFlag.get(flag);
  if (results === undefined) {
    results = createLastResults(flag);
    resultsByFlag.set(flag, results);
  }
  return results;
}

const resultsByFlag = new WeakMap<CompiledFlag, LastResults>();

function createLastResults(flag: CompiledFlag): LastResults {
  const outcomes: LastResult<Outcome> = new LastResult({
    of: flag.evaluate,
    *inSteps(context, pass) {
      return (yield* evaluations.inSteps(context, pass)).outcome;
    },
  });
  const evaluations = new LastResult<Evaluation>({
    of(context) {
      const outcome = outcomes.of(context);
      return { outcome, variation: flag.variationOf?.(context, outcome) };
    },
    inSteps: (context, pass) => evaluateInSteps(flag, context, pass),
  });
  return { outcomes, evaluations };
}

type IsMet = {
  of: (context: EvaluationContext) => boolean;
  inSteps: (context: EvaluationContext, pass: Pass) => Generator<undefined>;
};

function compileIsMet(is: Requirement["is"], required: CompiledFlag): IsMet {
  const { outcomes, evaluations } = lastResultsOf(required);
  if (is === "on" || is === "off") {
    const wanted = is === "on";
    return {
      of: (context) => outcomes.of(context).value === wanted,
      inSteps: (context, pass) => outcomes.inSteps(context, pass),
    };
  }
  const keys: readonly unknown[] = Array.isArray(is) ? is : [];
  return {
    of(context) {
      const key = variationKeyOf(required, evaluations.of(context));
      return key !== null && keys.includes(key);
    },
    inSteps: (context, pass) => evaluations.inSteps(context, pass),
  };
}

/** Returns the key of the variation that a user gets; null for the caller's default. */
export function variationKeyOf(
  { state, variationOf }: CompiledFlag,
  { outcome, variation = -1 }: Evaluation,
): string | null {
  if (variationOf === undefined) return outcome.variation;
  return state.variations?.[variation]?.key ?? null;
}

import { emptyContext } from "@halyard/evaluation";
import type { EvaluationEvents } from "@halyard/evaluation/events";
import type { Details, Evaluated, EvaluationReason, Evaluator } from "./client.ts";
import type { Guards } from "./guards.ts";
import type { RuleSet } from "./rules/rule-set.ts";

type Result = Pick<Details<unknown>, "value" | "reason"> & {
  variation: string | null | undefined;
};

/**
 * Returns an evaluator that also counts each result for evaluation events. Its methods evaluate with the reason. The
 * given one stays as fast as it is, for applications without events.
 */
export function withEvents(
  evaluator: Evaluator,
  options: { ruleSet: RuleSet; guards: Guards; events: EvaluationEvents },
): Evaluator {
  const { ruleSet, guards, events } = options;

  function counted<T extends Result>(key: unknown, context: unknown, result: T): T {
    const { value, variation } = result;
    const { reason, errorType, errorMessage } = descriptions[result.reason];
    events.count({
      key: nameOf(key),
      value,
      variant: variation,
      reason,
      errorType,
      errorMessage,
      version: ruleSet.flags.get(key as string)?.version,
      contextId: events.hasContextIds ? guards.guarded(() => idOf(context)) : undefined,
    });
    return result;
  }

  /** Counts results without reasons, which take a second evaluation. */
  function countAll(context: unknown, results: Iterable<[string, Evaluated]>): void {
    const prepared = guards.withContext(context, (found) => found) ?? emptyContext;
    for (const [key, result] of results) {
      const outcome = guards.guarded(() => ruleSet.flags.get(key)?.compiled.evaluate(prepared));
      if (outcome !== undefined) counted(key, context, { ...result, reason: outcome.reason });
    }
  }

  const methods: Omit<Evaluator, `get${"String" | "Number" | "Integer" | "Object"}` | "isEnabled"> =
    {
      ...evaluator,
      evaluate: (key, context, fallback) =>
        counted(key, context, evaluator.evaluate(key, context, fallback)),
      getStringDetails: (key, context, fallback) =>
        counted(key, context, evaluator.getStringDetails(key, context, fallback)),
      getNumberDetails: (key, context, fallback) =>
        counted(key, context, evaluator.getNumberDetails(key, context, fallback)),
      getIntegerDetails: (key, context, fallback) =>
        counted(key, context, evaluator.getIntegerDetails(key, context, fallback)),
      getObjectDetails: (key, context, fallback) =>
        counted(key, context, evaluator.getObjectDetails(key, context, fallback)),
      allFlags(context) {
        const values = evaluator.allFlags(context);
        countAll(context, Object.entries(values).map(evaluatedOf));
        return values;
      },
      allValues(context) {
        const values = evaluator.allValues(context);
        countAll(context, Object.entries(values));
        return values;
      },
    };
  return {
    ...methods,
    isEnabled: (...given) => methods.evaluate(...given).value,
    getString: (...given) => methods.getStringDetails(...given).value,
    getNumber: (...given) => methods.getNumberDetails(...given).value,
    getInteger: (...given) => methods.getIntegerDetails(...given).value,
    getObject: (...given) => methods.getObjectDetails(...given).value,
  };
}

function evaluatedOf([key, value]: [string, boolean]): [string, Evaluated] {
  return [key, { value, variation: value ? "on" : "off" }];
}

/** Maximum length of the key of a flag. */
const maxKeyLength = 128;

/** Plain JavaScript can pass anything as a key. */
function nameOf(key: unknown): string {
  return typeof key === "string" ? key.slice(0, maxKeyLength) : `a ${typeof key}`;
}

/** Returns the id of the user in a context. */
function idOf(context: unknown): string | undefined {
  const { id, user_id: alias } = (context ?? {}) as Record<string, unknown>;
  const given = id ?? alias;
  const isId = (typeof given === "string" && given !== "") || typeof given === "number";
  return isId ? String(given) : undefined;
}

type Description = { reason: string; errorType?: string; errorMessage?: string };

const failure = (errorType: string, errorMessage: string): Description => ({
  ...{ reason: "error", errorType, errorMessage },
});

/** The reasons and errors in the terms of OpenTelemetry. */
const descriptions: Readonly<Record<EvaluationReason, Description>> = {
  static: { reason: "static" },
  split: { reason: "split" },
  targeting_match: { reason: "targeting_match" },
  default: { reason: "default" },
  disabled: { reason: "disabled" },
  prerequisite_failed: { reason: "default" },
  flag_not_found: failure("flag_not_found", "The environment has no flag with this key."),
  not_ready: failure("provider_not_ready", "The client has no flags yet."),
  invalid_context: failure(
    "invalid_context",
    "The context is not an object, or reading it threw an error.",
  ),
  invalid_options: failure("provider_fatal", "The client has no usable address or key."),
  type_mismatch: failure("type_mismatch", "The flag has values of another type."),
};

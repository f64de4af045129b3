import {
  type EvaluationContext,
  type Explanation,
  explain,
  type Outcome,
} from "@halyard/evaluation";
import type { Client, Evaluation, EvaluationReason } from "./client.ts";
import { createContextReader } from "./context.ts";
import type { Log } from "./log.ts";
import type { Flag } from "./rules/flag.ts";
import type { RuleSet } from "./rules/rule-set.ts";
import { packageName, version } from "./version.ts";

type Evaluator = Pick<Client, "isEnabled" | "evaluate" | "allFlags" | "explain">;

type EvaluatorOptions = {
  ruleSet: RuleSet;
  /** False if the client was created with invalid options. */
  hasValidOptions: boolean;
  log: Log;
};

/** Evaluates the flags in memory, and counts the evaluations of each flag. */
export function createEvaluator(options: EvaluatorOptions): Evaluator {
  const { ruleSet, log } = options;
  const { withContext, guarded } = createGuards(log);

  /** Returns the outcome of a flag and counts it; undefined if the context is invalid. */
  function outcomeOf(flag: Flag, context: unknown): Outcome | undefined {
    const { constant, evaluate } = flag.compiled;
    const outcome = constant ?? withContext(context, evaluate);
    if (outcome !== undefined) count(flag, outcome);
    return outcome;
  }

  return {
    isEnabled(key, context, fallback) {
      const flag = ruleSet.flags.get(key);
      const outcome = flag === undefined ? undefined : outcomeOf(flag, context);
      if (outcome !== undefined) return outcome.value;
      if (flag === undefined) reasonOfMissing(key, options);
      return fallback === true;
    },
    evaluate(key, context, fallback) {
      const flag = ruleSet.flags.get(key);
      if (flag === undefined) return withoutOutcome(reasonOfMissing(key, options), fallback);
      return outcomeOf(flag, context) ?? withoutOutcome("invalid_context", fallback);
    },
    allFlags(context) {
      const values: [string, boolean][] = [];
      const prepared = withContext(context, (found) => found);
      for (const [key, flag] of ruleSet.flags) {
        const { constant, evaluate } = flag.compiled;
        const outcome =
          constant ?? (prepared === undefined ? undefined : guarded(() => evaluate(prepared)));
        if (outcome === undefined) continue;
        count(flag, outcome);
        values.push([key, outcome.value]);
      }
      return Object.fromEntries(values);
    },
    explain(key, context): Explanation | undefined {
      const flag = ruleSet.flags.get(key);
      if (flag === undefined) return undefined;
      return withContext(context, (prepared) => explain(flag.rules, prepared));
    },
  };
}

type Guards = {
  /** Calls a function with the prepared context. Returns undefined, and logs, if the context is invalid. */
  withContext<T>(context: unknown, use: (prepared: EvaluationContext) => T): T | undefined;
  /** Calls a function that reads a context. Returns undefined, and logs, if reading an attribute throws. */
  guarded<T>(read: () => T): T | undefined;
};

/** Creates the functions that keep errors in contexts away from the application. */
function createGuards(log: Log): Guards {
  const readContext = createContextReader(log);

  /** Getters and proxies run when an evaluation reads their attribute, and can throw. */
  function guarded<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      const name = error instanceof Error ? error.name : typeof error;
      log.once("warn", "invalid_context", `Invalid context: reading an attribute threw ${name}.`);
      return undefined;
    }
  }

  return {
    guarded,
    withContext: (context, use) =>
      guarded(() => {
        const prepared = readContext(context);
        if (prepared !== undefined) return use(prepared);
        log.once("warn", "invalid_context", "Invalid context: expected an object of attributes.");
        return undefined;
      }),
  };
}

/** Returns the reason why a flag is missing, and logs it once. */
function reasonOfMissing(
  key: unknown,
  { ruleSet, hasValidOptions, log }: EvaluatorOptions,
): EvaluationReason {
  // A log line about the options was written at the start.
  if (!hasValidOptions && ruleSet.source === "none") return "invalid_options";
  if (ruleSet.source === "none") {
    log.once("warn", "not_ready", "A flag was read before any flags arrived; await `ready()`.");
    return "not_ready";
  }
  const unsupported = ruleSet.unsupported.get(key as string);
  if (unsupported !== undefined) {
    const unknown = JSON.stringify(unsupported.unknown.slice(0, 128));
    log.once(
      "warn",
      "unsupported_flag",
      `The flag ${JSON.stringify(key)} uses ${unknown}, which ${packageName} ${version} does not know. It counts as not found: update the package.`,
    );
    return "flag_not_found";
  }
  const name = typeof key === "string" ? key.slice(0, 128) : `a ${typeof key}`;
  log.once("warn", "flag_not_found", `There is no flag ${JSON.stringify(name)}.`);
  return "flag_not_found";
}

function count(flag: Flag, { value }: Outcome): void {
  if (value) flag.on += 1;
  else flag.off += 1;
}

function withoutOutcome(reason: EvaluationReason, fallback: boolean | undefined): Evaluation {
  return { value: fallback === true, variation: undefined, reason };
}

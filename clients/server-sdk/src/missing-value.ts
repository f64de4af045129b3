import type { ValueType } from "@halyard/evaluation";
import type { EvaluationError } from "./client.ts";
import type { Log } from "./log.ts";
import type { RuleSet } from "./rules/rule-set.ts";
import { packageName, version } from "./version.ts";

export type EvaluatorOptions = {
  ruleSet: RuleSet;
  /** False if the client was created with invalid options. */
  hasValidOptions: boolean;
  log: Log;
};

/** A reason why the fallback applies. */
export type Failure = Lowercase<EvaluationError>;

/** Returns the reason why there is no flag with this key and type, and logs it once. */
export function reasonOfMissing(
  key: unknown,
  wanted: ValueType,
  { ruleSet, hasValidOptions, log }: EvaluatorOptions,
): Failure {
  // A log line about the options was written at the start.
  if (!hasValidOptions && ruleSet.source === "none") return "invalid_options";
  if (ruleSet.source === "none") {
    log.once("warn", "not_ready", "A flag was read before any flags arrived; await `ready()`.");
    return "not_ready";
  }
  const flag = ruleSet.flags.get(key as string);
  if (flag !== undefined)
    return typeMismatch(key as string, `${flag.typedAs ?? "boolean"}, not ${wanted}`, log);
  const unsupported = ruleSet.unsupported.get(key as string);
  if (unsupported !== undefined) {
    const unknown = JSON.stringify(unsupported.unknown.slice(0, 128));
    log.once(
      "warn",
      `unsupported_flag: ${key}`,
      `The flag ${JSON.stringify(key)} uses ${unknown}, which ${packageName} ${version} does not know. It counts as not found: update the package.`,
    );
    return "flag_not_found";
  }
  const withheld = ruleSet.withheld.get(key as string);
  if (withheld !== undefined) {
    const { problem } = withheld;
    const name = JSON.stringify(key);
    log.once("warn", `withheld_flag: ${key}`, `The flag ${name} counts as not found: ${problem}.`);
    return "flag_not_found";
  }
  const name = typeof key === "string" ? key.slice(0, 128) : `a ${typeof key}`;
  log.once("warn", "flag_not_found", `There is no flag ${JSON.stringify(name)}.`);
  return "flag_not_found";
}

/** Returns the members of a result whose value is the fallback, because the flag could not be evaluated. */
export function failureOf(reason: Failure) {
  return { reason, error: reason.toUpperCase() as EvaluationError };
}

/** Logs once for each flag that it was read with the method of another type. */
export function typeMismatch(key: string, types: string, log: Log): "type_mismatch" {
  const name = JSON.stringify(key.slice(0, 128));
  log.once(
    "warn",
    `type_mismatch: ${key}`,
    `The values of the flag ${name} are of the type ${types}. The fallback is used.`,
  );
  return "type_mismatch";
}

import type { EvaluationResult, FlagEntry } from "@halyard/contracts";

/** What a flag answers, without its key: flags with the same outcome share one object. */
export type FlagOutcome = Readonly<Omit<EvaluationResult, "key">>;

const disabled: FlagOutcome = { value: false, variation: "off", reason: "disabled" };
const enabled: FlagOutcome = { value: true, variation: "on", reason: "static" };

/**
 * From a flag as it is set to what it answers. A flag's value is whether it is enabled; its targeting
 * rules and its rollout percentage are not looked at, nor who is asking.
 */
export function evaluateFlag(flag: FlagEntry): FlagOutcome {
  return flag.enabled ? enabled : disabled;
}

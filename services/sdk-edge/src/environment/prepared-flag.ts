import type { FlagEntry } from "@halyard/contracts";
import {
  type CompiledFlag,
  codeOfOutcome,
  compile,
  emptyContext,
  hasPattern,
} from "@halyard/evaluation";

/** A flag that is ready to be evaluated. It is prepared once for each version of its entry. */
export type PreparedFlag = {
  readonly entry: FlagEntry;
  readonly compiled: CompiledFlag;
  /** Cost of evaluating it, in conditions; 0 if its outcome is constant. */
  readonly weight: number;
  /** Number of its outcome for the empty context. */
  readonly outcomeWithoutContext: number;
};

/** Worst-case cost of a condition with a regular expression, in other conditions. */
const expressionWeight = 500;

export function prepareFlag(entry: FlagEntry): PreparedFlag {
  const compiled = compile(entry);
  return {
    entry,
    compiled,
    weight: compiled.constant === undefined ? weightOf(entry) : 0,
    outcomeWithoutContext: codeOfOutcome(compiled.evaluate(emptyContext)),
  };
}

function weightOf({ targeting_rules }: FlagEntry): number {
  let weight = 0;
  for (const { conditions } of targeting_rules)
    for (const { operator } of conditions) weight += hasPattern(operator) ? expressionWeight : 1;
  return weight;
}

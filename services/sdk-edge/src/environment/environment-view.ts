import {
  type CompiledFlag,
  compileAll,
  type EvaluationContext,
  emptyContext,
} from "@halyard/evaluation";
import type { EnvironmentFlags } from "../snapshot/snapshot.ts";
import { compiledFlagsOf } from "./compiled-flags.ts";
import { createValuesWriter, type FlagValues } from "./flag-values.ts";

/**
 * What an environment answers. What does not depend on who asks is worked out once for each change;
 * for a request with a context, only the flags that depend on it are evaluated.
 */
export type EnvironmentView = {
  /** In the order of the keys. */
  readonly flags: readonly CompiledFlag[];
  find(key: string): CompiledFlag | undefined;
  /** The id of the flag with a key. */
  idOf(key: string): string | undefined;
  /** The values for somebody of whom nothing is known. */
  readonly valuesForNobody: FlagValues;
  valuesFor(context: EvaluationContext): FlagValues;
  /** The number of each flag's outcome, in bytes that the next evaluation of this view uses again. */
  outcomesFor(context: EvaluationContext): Uint8Array;
  /** The values that outcomes have, whoever evaluated them. */
  valuesOf(outcomeNumbers: Uint8Array): FlagValues;
  /** Whether its rules may take long to evaluate, also for a small context. */
  readonly isCostly: boolean;
};

export function deriveView(environment: EnvironmentFlags | undefined): EnvironmentView {
  const { identified, isCostly } = compiledFlagsOf(environment);
  const flags = identified.map(({ flag }) => flag);
  const byKey = new Map(identified.map((one) => [one.flag.key, one]));
  const evaluateAll = compileAll(flags);
  const outcomeNumbers = new Uint8Array(flags.length);
  const writer = createValuesWriter(flags.map(({ key }) => key));

  function outcomesFor(context: EvaluationContext): Uint8Array {
    evaluateAll(context, outcomeNumbers);
    return outcomeNumbers;
  }

  const valuesForNobody = writer.write(outcomesFor(emptyContext));
  return {
    flags,
    find: (key) => byKey.get(key)?.flag,
    idOf: (key) => byKey.get(key)?.id,
    valuesForNobody,
    valuesFor: (context) =>
      context === emptyContext ? valuesForNobody : writer.write(outcomesFor(context)),
    outcomesFor,
    valuesOf: writer.write,
    isCostly,
  };
}

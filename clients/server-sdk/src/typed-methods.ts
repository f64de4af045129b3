import { callersDefault, type EvaluationContext, type ValueType } from "@halyard/evaluation";
import type { Details, EvaluationReason, TypedMethods } from "./client.ts";
import type { Frozen } from "./flag-types.ts";
import type { Guards } from "./guards.ts";
import {
  type EvaluatorOptions,
  type Failure,
  failureOf,
  reasonOfMissing,
  typeMismatch,
} from "./missing-value.ts";
import { prerequisiteOf } from "./prerequisite.ts";
import type { Flag } from "./rules/flag.ts";

/** Creates the methods that return the values of typed flags and count the evaluations. */
export function createTypedMethods(options: EvaluatorOptions, guards: Guards): TypedMethods {
  const { find, detailsOf } = createReader(options, guards);

  /** Returns whether a variation is an integer or the caller's default, and logs if it is not. */
  function isInteger({ compiled, variations }: Flag, index: number): boolean {
    if (index === callersDefault || Number.isSafeInteger(variations.valueAt(index))) return true;
    typeMismatch(compiled.key, "number, not integer", options.log);
    return false;
  }

  return {
    getString: (key, context, fallback) =>
      (find(key, context, "string") as string | undefined) ?? fallback,
    getStringDetails: (key, context, fallback) =>
      detailsOf(key, context, { type: "string", fallback }),
    getNumber: (key, context, fallback) =>
      (find(key, context, "number") as number | undefined) ?? fallback,
    getNumberDetails: (key, context, fallback) =>
      detailsOf(key, context, { type: "number", fallback }),
    getInteger: (key, context, fallback) =>
      (find(key, context, "number", isInteger) as number | undefined) ?? fallback,
    getIntegerDetails: (key, context, fallback) =>
      detailsOf(key, context, { type: "number", fallback, accepts: isInteger }),
    getObject: <T>(key: string, context: unknown, fallback: T) =>
      (find(key, context, "object") ?? fallback) as Frozen<T>,
    getObjectDetails: <T>(key: string, context: unknown, fallback: T) =>
      detailsOf(key, context, { type: "object", fallback }) as Details<Frozen<T>>,
  };
}

/** Returns whether a variation has the wanted type. Other variations yield the fallback and are not counted. */
type Accepts = (flag: Flag, index: number) => boolean;

type Wanted<T> = { type: ValueType; fallback: T; accepts?: Accepts };

type Reader = {
  /** Returns the value of a flag; undefined if the fallback applies. */
  find(key: string, context: unknown, type: ValueType, accepts?: Accepts): unknown;
  /** Returns the value of a flag, or the fallback, with its origin. */
  detailsOf<T>(key: string, context: unknown, wanted: Wanted<T>): Details<T>;
};

function createReader(options: EvaluatorOptions, guards: Guards): Reader {
  const { ruleSet } = options;
  const { withContext } = guards;

  function decide(flag: Flag, context: unknown): Decision | undefined {
    const { constant, evaluate } = flag.compiled;
    const { constantIndex, indexFor } = flag.variations;
    if (constant !== undefined && constantIndex !== undefined)
      return { index: constantIndex, reason: constant.reason };
    return withContext(context, (prepared: EvaluationContext) => ({
      index: indexFor(prepared),
      reason: evaluate(prepared).reason,
    }));
  }

  return {
    // A decision has a reason too, which takes a second evaluation.
    find(key, context, type, accepts) {
      const flag = ruleSet.flags.get(key);
      if (flag?.typedAs !== type) {
        reasonOfMissing(key, type, options);
        return undefined;
      }
      const { constantIndex, indexFor } = flag.variations;
      const index = constantIndex ?? withContext(context, indexFor);
      if (index === undefined || accepts?.(flag, index) === false) return undefined;
      return flag.take(index);
    },
    detailsOf<T>(
      key: string,
      context: unknown,
      { type, fallback, accepts }: Wanted<T>,
    ): Details<T> {
      const flag = ruleSet.flags.get(key);
      if (flag?.typedAs !== type) return failed(fallback, reasonOfMissing(key, type, options));
      const decision = decide(flag, context);
      if (decision === undefined) return failed(fallback, "invalid_context");
      const { index, reason } = decision;
      if (accepts?.(flag, index) === false) return failed(fallback, "type_mismatch");
      const value = flag.take(index);
      const why = { reason, ...prerequisiteOf(flag, { reason, context }, guards) };
      if (value === undefined) return { value: fallback, variation: null, ...why };
      return { value: value as T, variation: flag.variations.keyOf(index), ...why };
    },
  };
}

type Decision = { index: number; reason: EvaluationReason };

function failed<T>(value: T, reason: Failure): Details<T> {
  return { value, variation: null, ...failureOf(reason) };
}

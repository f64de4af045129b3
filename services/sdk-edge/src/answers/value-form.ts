import type { Evaluation, EvaluationContext } from "@halyard/evaluation";
import type { EnvironmentView } from "./environment-view.ts";
import type { FlagValues } from "./flag-values.ts";
import type { PreparedFlag } from "./prepared-flag.ts";
import { booleanMembers, typedTagOf, typedValuesFor, typedValuesOf } from "./typed-values.ts";
import type { VariationText } from "./variation-texts.ts";

/** A form of the values of all flags: all as booleans, or each in the type of its flag. */
export type ValueForm = {
  /** The member of responses that contains the values, and the name of their events. */
  readonly name: "flags" | "values";
  valuesFor(view: EnvironmentView, context: EvaluationContext): FlagValues;
  /** Returns the values of evaluated outcomes, and the variations of the typed flags. */
  valuesOf: FromEvaluated<FlagValues>;
  /** Returns the tag of the values without the values, which costs less. */
  tagFor(view: EnvironmentView, context: EvaluationContext): string;
  tagOf: FromEvaluated<string>;
  /** Returns the value of one flag as JSON, in a string of bytes. */
  textFor(flag: PreparedFlag, context: EvaluationContext): string;
  textOf(flag: PreparedFlag, evaluation: Evaluation): string;
};

type FromEvaluated<T> = (
  view: EnvironmentView,
  outcomeCodes: Uint8Array,
  variations: readonly VariationText[],
) => T;

/** A typed flag is true for users who are in. */
export const asBooleans: ValueForm = {
  name: "flags",
  valuesFor: (view, context) => view.valuesFor(context),
  valuesOf: (view, outcomeCodes) => view.valuesOf(outcomeCodes),
  tagFor: (view, context) => view.tagFor(context),
  tagOf: (view, outcomeCodes) => view.tagOf(outcomeCodes),
  textFor: ({ compiled }, context) => String(compiled.evaluate(context).value),
  textOf: (_flag, { outcome }) => String(outcome.value),
};

export const inTheirTypes: ValueForm = {
  name: "values",
  valuesFor: typedValuesFor,
  valuesOf: typedValuesOf,
  tagFor(view, context) {
    const outcomeCodes = view.outcomesFor(context);
    return typedTagOf(view, outcomeCodes, view.variationsFor(context, outcomeCodes));
  },
  tagOf: typedTagOf,
  textFor(flag, context) {
    const outcome = flag.compiled.evaluate(context);
    return flag.isTyped
      ? flag.variationFor(context, outcome).member
      : booleanMembers[`${outcome.value}`];
  },
  textOf: (flag, { outcome, variation }) =>
    variation === undefined
      ? booleanMembers[`${outcome.value}`]
      : flag.variationAt(variation).member,
};

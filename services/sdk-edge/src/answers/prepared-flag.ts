import type { FlagEntry } from "@halyard/contracts";
import {
  type CompiledFlag,
  callersDefault,
  categoryOf,
  codeOfOutcome,
  compile,
  type EvaluationContext,
  emptyContext,
  hasPattern,
  type Outcome,
} from "@halyard/evaluation";
import { type VariationText, variationTextsOf } from "./variation-texts.ts";

/** A flag that is ready to be evaluated. It is prepared once for each version of its entry. */
export class PreparedFlag {
  readonly entry: FlagEntry;
  readonly compiled: CompiledFlag;
  /** Cost of evaluating it, in conditions; 0 if its outcome is constant. */
  readonly weight: number;
  /** Approximate size of its rules and variations in bytes. */
  readonly bytes: number;
  /** Number of its outcome for the empty context. */
  readonly outcomeWithoutContext: number;
  #variationTexts: readonly VariationText[] | undefined;

  constructor(entry: FlagEntry) {
    const compiled = compile(entry);
    this.entry = entry;
    this.compiled = compiled;
    this.weight = compiled.constant === undefined ? weightOf(entry) : 0;
    this.bytes = bytesOf(entry);
    this.outcomeWithoutContext = codeOfOutcome(compiled.evaluate(emptyContext));
  }

  get isTyped(): boolean {
    return this.compiled.variationOf !== undefined;
  }

  /** Returns the variation of a typed flag for a context with this outcome. */
  variationFor(context: EvaluationContext, outcome: Outcome): VariationText {
    return this.variationAt(this.compiled.variationOf?.(context, outcome) ?? callersDefault);
  }

  /** Returns the key of a typed flag's variation with this index; undefined for the caller's default. */
  variationKey(index: number | undefined): string | undefined {
    return index === undefined ? undefined : this.entry.variations?.[index]?.key;
  }

  /** Returns the variation of a typed flag with this index. */
  variationAt(index: number): VariationText {
    this.#variationTexts ??= variationTextsOf(this.entry);
    // The caller's default is the last text, and its index is -1.
    return this.#variationTexts.at(index) as VariationText;
  }
}

/** Worst-case cost of a condition with a regular expression, in other conditions. */
const expressionWeight = 500;

/** Number of items in a list whose first lookup costs as much as a condition at worst. */
const itemsPerWeight = 32;

/** A text with commas can be a list, whose items take two characters at least. */
const charactersPerWeight = 2 * itemsPerWeight;

function weightOf({ targeting_rules }: FlagEntry): number {
  let weight = 0;
  // The variation of a rule is found by matching the rules again.
  const times = targeting_rules.some(({ serve }) => serve !== undefined) ? 2 : 1;
  for (const { conditions } of targeting_rules)
    for (const { operator, value } of conditions) {
      weight += hasPattern(operator) ? expressionWeight : 1;
      if (categoryOf(operator) !== "list") continue;
      if (Array.isArray(value)) weight += Math.floor(value.length / itemsPerWeight);
      else if (typeof value === "string") weight += Math.floor(value.length / charactersPerWeight);
    }
  return times * weight;
}

/** Sizes without texts: of a rule, of a condition, and of an item of a value. */
const ruleBytes = 64;
const conditionBytes = 64;
const itemBytes = 4;
const rangeBytes = 12;

/** Adds up the lengths of the texts. Serializing the rules would take several times as long. */
function bytesOf({ targeting_rules, serve, variations = [] }: FlagEntry): number {
  let bytes = bytesOfServe(serve);
  for (const { json } of variations) bytes += json.length;
  for (const { id = "", name = "", conditions, serve: own } of targeting_rules) {
    bytes += ruleBytes + id.length + name.length + bytesOfServe(own);
    for (const { attribute, value } of conditions) {
      bytes += conditionBytes + attribute.length;
      for (const item of Array.isArray(value) ? value : [value])
        bytes += itemBytes + (typeof item === "string" ? item.length : 0);
    }
  }
  return bytes;
}

function bytesOfServe(serve: FlagEntry["serve"]): number {
  if (serve === undefined || !("split" in serve)) return 0;
  return serve.split.reduce((sum, { ranges }) => sum + rangeBytes * (1 + ranges.length), 0);
}

import type { FlagEntry } from "@halyard/contracts";
import {
  type CompiledFlag,
  callersDefault,
  codeOfOutcome,
  compile,
  type EvaluationContext,
  emptyContext,
  isAttributeCondition,
  type Need,
  needsOf,
  noReferences,
  type Outcome,
  type References,
  type State,
} from "@halyard/evaluation";
import { weightOfConditions } from "./condition-weight.ts";
import type { LinkedAudience } from "./linked-audiences.ts";
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

  constructor(entry: FlagEntry, references = noReferences) {
    const compiled = compile(entry, references);
    this.entry = entry;
    this.compiled = compiled;
    this.weight = weightOf(compiled, entry, references);
    this.bytes = bytesOf(entry);
    this.outcomeWithoutContext = codeOfOutcome(compiled.evaluate(emptyContext));
  }

  /** Length of the longest chain of flags that it requires. */
  get depth(): number {
    return 0;
  }

  /** The compiled audiences and flags that it refers to. */
  get references(): References {
    return noReferences;
  }

  /** The features that an evaluator of the flag must support. */
  get needs(): readonly Need[] {
    return needsOf(this.entry);
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
    // The caller's default is the last text, and its index is -1.
    return this.variationTexts().at(index) as VariationText;
  }

  /** Returns the variations of a typed flag in order, and after them the caller's default. */
  variationTexts(): readonly VariationText[] {
    this.#variationTexts ??= variationTextsOf(this.entry);
    return this.#variationTexts;
  }
}

/** The references of a flag, by key. */
export type LinkedReferences = {
  readonly audiences: ReadonlyMap<string, LinkedAudience>;
  readonly flags: ReadonlyMap<string, PreparedFlag>;
};

/** A flag that refers to audiences or to other flags. It is prepared again when one of them changes. */
export class LinkedFlag extends PreparedFlag {
  readonly linked: LinkedReferences;
  readonly #depth: number;
  readonly #references: References;

  constructor(entry: FlagEntry, linked: LinkedReferences) {
    const references = {
      audiences: new Map([...linked.audiences].map(([key, { compiled }]) => [key, compiled])),
      flags: new Map([...linked.flags].map(([key, { compiled }]) => [key, compiled])),
    };
    super(entry, references);
    this.linked = linked;
    let depth = 0;
    for (const required of linked.flags.values()) depth = Math.max(depth, required.depth + 1);
    this.#depth = depth;
    this.#references = references;
  }

  override get depth(): number {
    return this.#depth;
  }

  override get references(): References {
    return this.#references;
  }

  override get needs(): readonly Need[] {
    return needsOf(this.entry, (key) => this.linked.audiences.get(key)?.entry);
  }
}

/**
 * Returns the cost of evaluating a flag, in conditions. A required flag counts again, because it is evaluated once for
 * all its dependents and once for its own value. Audiences count once for a view.
 */
function weightOf(compiled: CompiledFlag, entry: FlagEntry, references: References): number {
  let weight = ownWeightOf(compiled, entry);
  if (weight === 0 || references === noReferences) return weight;
  for (const required of references.flags.values()) weight += ownWeightOf(required, required.state);
  return weight;
}

function ownWeightOf({ constant }: CompiledFlag, state: State): number {
  if (constant !== undefined) return 0;
  const { targeting_rules: rules, requires = [] } = state;
  let weight = 0;
  // The variation of a rule is found by matching the rules again.
  const times = rules.some(({ serve }) => serve !== undefined) ? 2 : 1;
  for (const { conditions } of rules) weight += weightOfConditions(conditions);
  return times * (requires.length + weight);
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
    for (const condition of conditions) {
      if (!isAttributeCondition(condition)) {
        bytes += conditionBytes;
        continue;
      }
      const { attribute, value } = condition;
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

import {
  codeOfOutcome,
  type EvaluationContext,
  emptyContext,
  evaluateInSteps,
  type Outcome,
  outcomes,
  outcomesByCode,
  type Pass,
} from "@halyard/evaluation";
import { FlagKeys } from "./flag-keys.ts";
import { type FlagValues, valuesWriterOf } from "./flag-values.ts";
import { type Links, noLinks } from "./linked-flags.ts";
import type { PreparedFlag } from "./prepared-flag.ts";
import { findFlag, type Segment, type Segments } from "./segments.ts";
import { unmetInSteps, unmetRequirement } from "./unmet-requirement.ts";
import type { ValueForm } from "./value-form.ts";
import type { VariationText } from "./variation-texts.ts";

/** Weight above which a view is costly. At worst, 5,000 conditions, each searching a text of 4 KiB, take 100 ms. */
const costlyWeight = 5_000;

/** A typed flag, and its position among all flags of a view. */
export type TypedFlag = { readonly position: number; readonly flag: PreparedFlag };

/** The evaluation of all flags. */
export type EvaluatedFlags = {
  /** The outcome code of each flag. */
  outcomeCodes: Uint8Array;
  /** The variation of each typed flag. */
  variations: readonly VariationText[];
  /** The key of the unmet requirement of each flag with the outcome `prerequisiteFailed`. */
  unmet: readonly string[];
};

/**
 * The prepared responses of one state of an environment. A view is immutable. A change creates another view, which
 * shares all unchanged parts with this one. Parts that only requests need are prepared by the first request that needs
 * them.
 */
export class EnvironmentView {
  /** The flags in the order of their keys. */
  readonly segments: Segments;
  readonly keys: FlagKeys;
  /** True if evaluating all flags may take tens of milliseconds. */
  readonly isCostly: boolean;
  #valuesWithoutContext: FlagValues | undefined;
  #tagWithoutContext: string | undefined;
  #typed: readonly TypedFlag[] | undefined;

  /** The audiences that the flags use. */
  readonly links: Links;

  constructor(segments: Segments, previousKeys: FlagKeys | undefined, links = noLinks) {
    this.segments = segments;
    this.keys = keysOf(segments, previousKeys);
    this.links = links;
    this.isCostly = segments.reduce((sum, { weight }) => sum + weight, links.weight) > costlyWeight;
  }

  /** Returns the flag with a key. */
  find(key: string): PreparedFlag | undefined {
    return findFlag(this.segments, key);
  }

  /** The typed flags in the order of their keys. */
  get typed(): readonly TypedFlag[] {
    this.#typed ??= typedFlagsOf(this.segments);
    return this.#typed;
  }

  /** The values for the empty context. */
  get valuesWithoutContext(): FlagValues {
    this.#valuesWithoutContext ??= this.valuesOf(this.#outcomesWithoutContext());
    return this.#valuesWithoutContext;
  }

  valuesFor(context: EvaluationContext): FlagValues {
    if (context === emptyContext) return this.valuesWithoutContext;
    return this.valuesOf(this.outcomesFor(context));
  }

  /** Returns the tag of the values without the values, which costs less. */
  tagFor(context: EvaluationContext): string {
    if (context !== emptyContext) return this.tagOf(this.outcomesFor(context));
    this.#tagWithoutContext ??= this.tagOf(this.#outcomesWithoutContext());
    return this.#tagWithoutContext;
  }

  /** Returns the outcome code of each flag. The next evaluation overwrites these bytes. */
  outcomesFor(context: EvaluationContext): Uint8Array {
    const { all, ofSegments } = this.keys.outcomes;
    for (let index = 0; index < this.segments.length; index += 1)
      this.segments[index]?.evaluateAll(context, ofSegments[index] as Uint8Array);
    return all;
  }

  /** Returns the variation of each typed flag for a context with these outcomes. */
  variationsFor(context: EvaluationContext, outcomeCodes: Uint8Array): readonly VariationText[] {
    const { typed } = this;
    if (typed.length === 0) return noVariations;
    return typed.map(({ position, flag }) =>
      flag.variationFor(context, outcomesByCode[outcomeCodes[position] as number] as Outcome),
    );
  }

  /** Returns the key of the unmet requirement of each flag that one holds back, for a context with these outcomes. */
  unmetFor(context: EvaluationContext, outcomeCodes: Uint8Array): readonly string[] {
    const unmet: string[] = [];
    let segment = 0;
    let begin = 0;
    for (const position of positionsHeldBack(outcomeCodes)) {
      let { flags } = this.segments[segment] as Segment;
      while (position >= begin + flags.length) {
        begin += flags.length;
        segment += 1;
        ({ flags } = this.segments[segment] as Segment);
      }
      const { compiled } = flags[position - begin] as PreparedFlag;
      unmet.push(unmetRequirement(compiled, context, outcomes.prerequisiteFailed) ?? "");
    }
    return unmet;
  }

  /**
   * Evaluates like `outcomesFor`, `variationsFor` and `unmetFor`, one condition at a time, so that the caller can serve other
   * requests in between. The caller owns the returned bytes.
   */
  *evaluateInSteps(context: EvaluationContext): Generator<undefined, EvaluatedFlags> {
    const outcomeCodes = new Uint8Array(this.keys.size);
    const variations: VariationText[] = [];
    const unmet: string[] = [];
    const pass: Pass = new Map();
    let index = 0;
    for (const { flags } of this.segments)
      for (const flag of flags) {
        const { compiled, outcomeWithoutContext } = flag;
        let outcome = compiled.constant;
        // A generator costs far more than a constant flag, and most flags of a large environment are constant.
        if (outcome !== undefined) {
          outcomeCodes[index] = outcomeWithoutContext;
          if (flag.isTyped) variations.push(flag.variationFor(context, outcome));
        } else {
          const evaluated = yield* evaluateInSteps(compiled, context, pass);
          ({ outcome } = evaluated);
          outcomeCodes[index] = codeOfOutcome(outcome);
          if (evaluated.variation !== undefined)
            variations.push(flag.variationAt(evaluated.variation));
        }
        if (outcome === outcomes.prerequisiteFailed)
          unmet.push((yield* unmetInSteps(compiled, context, { outcome, pass })) ?? "");
        index += 1;
      }
    return { outcomeCodes, variations, unmet };
  }

  /** Returns the values of evaluated outcomes. */
  valuesOf(outcomeCodes: Uint8Array): FlagValues {
    const writer = valuesWriterOf(this.keys);
    const etag = writer.tag(outcomeCodes);
    return { body: writer.body(), etag };
  }

  tagOf(outcomeCodes: Uint8Array): string {
    return valuesWriterOf(this.keys).tag(outcomeCodes);
  }

  #outcomesWithoutContext(): Uint8Array {
    const { all, ofSegments } = this.keys.outcomes;
    this.segments.forEach((segment, index) => {
      ofSegments[index]?.set(segment.outcomesWithoutContext);
    });
    return all;
  }
}

const noVariations: readonly VariationText[] = [];

const heldBackCode = codeOfOutcome(outcomes.prerequisiteFailed);

/** Returns the positions of the flags that an unmet requirement holds back. */
export function positionsHeldBack(outcomeCodes: Uint8Array): number[] {
  const positions: number[] = [];
  let position = outcomeCodes.indexOf(heldBackCode);
  for (; position !== -1; position = outcomeCodes.indexOf(heldBackCode, position + 1))
    positions.push(position);
  return positions;
}

function typedFlagsOf(segments: Segments): readonly TypedFlag[] {
  const typed: TypedFlag[] = [];
  let begin = 0;
  for (const { flags, typedIndexes } of segments) {
    for (const index of typedIndexes)
      typed.push({ position: begin + index, flag: flags[index] as PreparedFlag });
    begin += flags.length;
  }
  return typed;
}

/** Returns the previous keys if they are those of the segments. */
function keysOf(segments: Segments, previous: FlagKeys | undefined): FlagKeys {
  const isSame =
    previous?.segments.length === segments.length &&
    segments.every(({ keys }, index) => keys === previous.segments[index]);
  return isSame ? previous : new FlagKeys(segments.map(({ keys }) => keys));
}

/** A flag that differs between two views. Undefined on the side that does not have it. */
export type ChangedFlag = {
  key: string;
  before: PreparedFlag | undefined;
  after: PreparedFlag | undefined;
};

/** The difference between the values of two views for one context. */
export type Delta = {
  /** The values that are new or different, as JSON in strings of bytes, by flag key. */
  changed: readonly (readonly [key: string, text: string])[];
  /** The keys of flags that were deleted. */
  removed: readonly string[];
};

/**
 * Returns the flags that differ between two views in the order of their keys, the removed ones last. Only the segments
 * that the views do not share are compared.
 */
export function changedFlags(before: EnvironmentView, after: EnvironmentView): ChangedFlag[] {
  const [removed, added] = withoutSharedEnds(
    unsharedFlags(before, after),
    unsharedFlags(after, before),
  );
  const changed: ChangedFlag[] = [];
  const earlier = new Map(removed.map((flag) => [flag.entry.key, flag]));
  for (const flag of added) {
    const { key } = flag.entry;
    const known = earlier.get(key);
    earlier.delete(key);
    if (known !== flag) changed.push({ key, before: known, after: flag });
  }
  for (const [key, flag] of earlier) changed.push({ key, before: flag, after: undefined });
  return changed;
}

/** Returns the flags of a view in the segments that the other view does not have. */
function unsharedFlags(view: EnvironmentView, other: EnvironmentView): PreparedFlag[] {
  const shared = new Set(other.segments);
  return view.segments
    .filter((segment) => !shared.has(segment))
    .flatMap((segment) => segment.flags);
}

/** Removes the common beginning and end of two lists. Usually one flag of a segment has changed. */
function withoutSharedEnds<T>(some: readonly T[], others: readonly T[]): [T[], T[]] {
  const shorter = Math.min(some.length, others.length);
  let begin = 0;
  while (begin < shorter && some[begin] === others[begin]) begin += 1;
  let end = 0;
  while (end < shorter - begin && some.at(-1 - end) === others.at(-1 - end)) end += 1;
  return [some.slice(begin, some.length - end), others.slice(begin, others.length - end)];
}

/**
 * Returns the delta of a context; undefined if no value differs. `inSteps` evaluates one condition at a time, so that the
 * caller can serve other requests in between. Otherwise the first step is the only one.
 */
export function* deltaFor(
  context: EvaluationContext,
  flags: readonly ChangedFlag[],
  { form, inSteps }: { form: ValueForm; inSteps: boolean },
): Generator<undefined, Delta | undefined> {
  const changed: [string, string][] = [];
  const removed: string[] = [];
  const pass: Pass = new Map();
  for (const { key, before, after } of flags) {
    if (after === undefined) {
      removed.push(key);
      continue;
    }
    const text = inSteps
      ? yield* textInSteps(form, after, { context, pass })
      : form.textFor(after, context);
    const earlier =
      before &&
      (inSteps
        ? yield* textInSteps(form, before, { context, pass })
        : form.textFor(before, context));
    if (earlier !== text) changed.push([key, text]);
  }
  return changed.length === 0 && removed.length === 0 ? undefined : { changed, removed };
}

function* textInSteps(
  form: ValueForm,
  flag: PreparedFlag,
  { context, pass }: { context: EvaluationContext; pass: Pass },
): Generator<undefined, string> {
  return form.textOf(flag, yield* evaluateInSteps(flag.compiled, context, pass));
}

/**
 * Returns a function with the results of `find`. A result is remembered while the older view is in use. The newer view
 * is held weakly. Otherwise the view of a slow client would keep all later views in memory, each through the one before.
 */
export function rememberBetween<T>(
  find: (from: EnvironmentView, to: EnvironmentView, environmentId: string) => T,
): typeof find {
  const last = new WeakMap<EnvironmentView, { to: WeakRef<EnvironmentView>; found: T }>();
  return (from, to, environmentId) => {
    const known = last.get(from);
    if (known?.to.deref() === to) return known.found;
    const found = find(from, to, environmentId);
    last.set(from, { to: new WeakRef(to), found });
    return found;
  };
}

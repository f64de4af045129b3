import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import type { TakenEntry } from "../snapshot/take-entries.ts";
import { FlagKeys } from "./flag-keys.ts";
import { type FlagValues, valuesWriterOf } from "./flag-values.ts";
import type { PreparedFlag } from "./prepared-flag.ts";
import { changeFlags, findFlag, orderFlags, type Segments } from "./segments.ts";

/**
 * The prepared responses of one state of an environment. A view is immutable. A change creates another view, which
 * shares all unchanged parts with this one. Parts that only requests need are prepared by the first request that needs
 * them.
 */
export type EnvironmentView = {
  /** The flags in the order of their keys. */
  readonly segments: Segments;
  readonly keys: FlagKeys;
  /** The flag with a key. */
  find(key: string): PreparedFlag | undefined;
  /** The values for the empty context. */
  readonly valuesWithoutContext: FlagValues;
  valuesFor(context: EvaluationContext): FlagValues;
  /** Returns the tag of the values without the values, which costs less. */
  tagFor(context: EvaluationContext): string;
  /** Returns the outcome code of each flag. The next evaluation overwrites these bytes. */
  outcomesFor(context: EvaluationContext): Uint8Array;
  /** Returns the values of evaluated outcomes. */
  valuesOf(outcomeCodes: Uint8Array): FlagValues;
  tagOf(outcomeCodes: Uint8Array): string;
  /** True if evaluating all flags may take tens of milliseconds. */
  readonly isCostly: boolean;
};

/** Weight above which a view is costly. At worst, 5,000 conditions, each searching a text of 4 KiB, take 100 ms. */
const costlyWeight = 5_000;

/** Prepares the view of an environment. Flags that `previous` has prepared are reused. */
export function deriveView(
  environment: EnvironmentFlags | undefined,
  previous?: EnvironmentView,
): EnvironmentView {
  return createView(orderFlags(existingFlags(environment), previous?.segments), previous?.keys);
}

function* existingFlags(environment: EnvironmentFlags | undefined) {
  if (environment === undefined) return;
  for (const flag of environment.flags.values()) if (!isDeleted(flag)) yield flag;
}

/** Returns the view after entries of its flags were applied. */
export function changeView(view: EnvironmentView, taken: Iterable<TakenEntry>): EnvironmentView {
  return createView(changeFlags(view.segments, taken), view.keys);
}

function createView(segments: Segments, previousKeys: FlagKeys | undefined): EnvironmentView {
  const keys = keysOf(segments, previousKeys);
  let valuesWithoutContext: FlagValues | undefined;
  let tagWithoutContext: string | undefined;

  function outcomesFor(context: EvaluationContext): Uint8Array {
    const { all, ofSegments } = keys.outcomes;
    for (let index = 0; index < segments.length; index += 1)
      segments[index]?.evaluateAll(context, ofSegments[index] as Uint8Array);
    return all;
  }

  function outcomesWithoutContext(): Uint8Array {
    const { all, ofSegments } = keys.outcomes;
    segments.forEach((segment, index) => {
      ofSegments[index]?.set(segment.outcomesWithoutContext);
    });
    return all;
  }

  function valuesOf(outcomeCodes: Uint8Array): FlagValues {
    const writer = valuesWriterOf(keys);
    const etag = writer.tag(outcomeCodes);
    return { body: writer.body(), etag };
  }

  const tagOf = (outcomeCodes: Uint8Array) => valuesWriterOf(keys).tag(outcomeCodes);
  const view: EnvironmentView = {
    segments,
    keys,
    find: (key) => findFlag(segments, key),
    get valuesWithoutContext() {
      valuesWithoutContext ??= valuesOf(outcomesWithoutContext());
      return valuesWithoutContext;
    },
    valuesFor: (context) =>
      context === emptyContext ? view.valuesWithoutContext : valuesOf(outcomesFor(context)),
    tagFor(context) {
      if (context !== emptyContext) return tagOf(outcomesFor(context));
      tagWithoutContext ??= tagOf(outcomesWithoutContext());
      return tagWithoutContext;
    },
    outcomesFor,
    valuesOf,
    tagOf,
    isCostly: segments.reduce((sum, { weight }) => sum + weight, 0) > costlyWeight,
  };
  return view;
}

function keysOf(segments: Segments, previous: FlagKeys | undefined): FlagKeys {
  const isSame =
    previous?.segments.length === segments.length &&
    segments.every(({ keys }, index) => keys === previous.segments[index]);
  return isSame ? previous : new FlagKeys(segments.map(({ keys }) => keys));
}

import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { type EnvironmentFlags, isDeleted } from "../snapshot/snapshot.ts";
import { FlagKeys } from "./flag-keys.ts";
import { type FlagValues, valuesWriterOf } from "./flag-values.ts";
import { changeFlags, findFlag, type OrderedFlags, orderFlags } from "./ordered-flags.ts";
import type { PreparedFlag } from "./prepared-flag.ts";
import type { FlagDifference } from "./segment.ts";

/**
 * The answers of one state of an environment. It never changes. A change makes another view, which shares
 * with this one everything that the change leaves as it is; what only requests need is prepared by the
 * first request that needs it.
 */
export type EnvironmentView = {
  readonly flags: OrderedFlags;
  readonly keys: FlagKeys;
  /** The flag with a key. */
  find(key: string): PreparedFlag | undefined;
  /** The values for the empty context. */
  readonly valuesForNobody: FlagValues;
  valuesFor(context: EvaluationContext): FlagValues;
  /** The tag of these values alone, which costs less. */
  tagFor(context: EvaluationContext): string;
  /** The number of each flag's outcome, in bytes that the next evaluation of this view uses again. */
  outcomesFor(context: EvaluationContext): Uint8Array;
  /** The values that outcomes have, whoever evaluated them. */
  valuesOf(outcomeNumbers: Uint8Array): FlagValues;
  tagOf(outcomeNumbers: Uint8Array): string;
  /** True if evaluating the rules of all flags may take more than some tens of milliseconds. */
  readonly isCostly: boolean;
};

/** In conditions: five thousand that look through a text of 4 KiB take a tenth of a second at worst. */
const costlyWeight = 5_000;

/** Prepares the view of an environment; flags that `previous` has prepared are used again. */
export function deriveView(
  environment: EnvironmentFlags | undefined,
  previous?: EnvironmentView,
): EnvironmentView {
  return createView(orderFlags(existingFlags(environment), previous?.flags), previous?.keys);
}

function* existingFlags(environment: EnvironmentFlags | undefined) {
  if (environment === undefined) return;
  for (const flag of environment.flags.values()) if (!isDeleted(flag)) yield flag;
}

/** The view after some flags have changed. */
export function changeView(
  view: EnvironmentView,
  differences: Iterable<FlagDifference>,
): EnvironmentView {
  return createView(changeFlags(view.flags, differences), view.keys);
}

function createView(flags: OrderedFlags, previousKeys: FlagKeys | undefined): EnvironmentView {
  const keys = keysOf(flags, previousKeys);
  let valuesForNobody: FlagValues | undefined;
  let tagForNobody: string | undefined;

  function outcomesFor(context: EvaluationContext): Uint8Array {
    const { all, ofSegments } = keys.outcomes;
    for (let index = 0; index < flags.length; index += 1)
      flags[index]?.evaluateAll(context, ofSegments[index] as Uint8Array);
    return all;
  }

  function outcomesForNobody(): Uint8Array {
    const { all, ofSegments } = keys.outcomes;
    flags.forEach((segment, index) => {
      ofSegments[index]?.set(segment.outcomesForNobody);
    });
    return all;
  }

  function valuesOf(outcomes: Uint8Array): FlagValues {
    const writer = valuesWriterOf(keys);
    const etag = writer.tag(outcomes);
    return { body: writer.body(), etag };
  }

  const tagOf = (outcomes: Uint8Array) => valuesWriterOf(keys).tag(outcomes);
  const view: EnvironmentView = {
    flags,
    keys,
    find: (key) => findFlag(flags, key),
    get valuesForNobody() {
      valuesForNobody ??= valuesOf(outcomesForNobody());
      return valuesForNobody;
    },
    valuesFor: (context) =>
      context === emptyContext ? view.valuesForNobody : valuesOf(outcomesFor(context)),
    tagFor(context) {
      if (context !== emptyContext) return tagOf(outcomesFor(context));
      tagForNobody ??= tagOf(outcomesForNobody());
      return tagForNobody;
    },
    outcomesFor,
    valuesOf,
    tagOf,
    isCostly: flags.reduce((sum, { weight }) => sum + weight, 0) > costlyWeight,
  };
  return view;
}

function keysOf(flags: OrderedFlags, previous: FlagKeys | undefined): FlagKeys {
  const isSame =
    previous?.segments.length === flags.length &&
    flags.every(({ keys }, index) => keys === previous.segments[index]);
  return isSame ? previous : new FlagKeys(flags.map(({ keys }) => keys));
}

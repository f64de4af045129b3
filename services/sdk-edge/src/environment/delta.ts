import { type CompiledFlag, type EvaluationContext, evaluateInSteps } from "@halyard/evaluation";
import type { EnvironmentView } from "./environment-view.ts";
import type { PreparedFlag } from "./prepared-flag.ts";

/** A flag that differs between two views. Undefined on the side that does not have it. */
export type ChangedFlag = {
  key: string;
  before: CompiledFlag | undefined;
  after: CompiledFlag | undefined;
};

/** The difference between the values of two views for one context. */
export type Delta = {
  /** The values that are new or different, by flag key. */
  changed: readonly (readonly [key: string, value: boolean])[];
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
  const earlier = new Map(removed.map(({ compiled }) => [compiled.key, compiled]));
  for (const { compiled } of added) {
    const { key } = compiled;
    const known = earlier.get(key);
    earlier.delete(key);
    if (known !== compiled) changed.push({ key, before: known, after: compiled });
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

/** Returns the delta of a context; undefined if no value differs. */
export function deltaFor(
  context: EvaluationContext,
  flags: readonly ChangedFlag[],
): Delta | undefined {
  return deltaOf((flag) => flag.evaluate(context).value, flags);
}

/**
 * Returns the delta of a context like `deltaFor`, one condition at a time, so that the caller can serve other requests
 * in between.
 */
export function* deltaInSteps(
  context: EvaluationContext,
  flags: readonly ChangedFlag[],
): Generator<undefined, Delta | undefined> {
  const values = new Map<CompiledFlag, boolean>();
  for (const { before, after } of flags) {
    if (after === undefined) continue;
    for (const flag of before === undefined ? [after] : [after, before])
      values.set(flag, (yield* evaluateInSteps(flag, context)).value);
  }
  return deltaOf((flag) => values.get(flag) === true, flags);
}

function deltaOf(
  valueFor: (flag: CompiledFlag) => boolean,
  flags: readonly ChangedFlag[],
): Delta | undefined {
  const changed: [string, boolean][] = [];
  const removed: string[] = [];
  for (const { key, before, after } of flags) {
    if (after === undefined) {
      removed.push(key);
      continue;
    }
    const value = valueFor(after);
    if (before === undefined || valueFor(before) !== value) changed.push([key, value]);
  }
  return changed.length === 0 && removed.length === 0 ? undefined : { changed, removed };
}

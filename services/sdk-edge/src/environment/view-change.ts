import { type CompiledFlag, type EvaluationContext, evaluateInSteps } from "@halyard/evaluation";
import type { EnvironmentView } from "./environment-view.ts";
import type { PreparedFlag } from "./prepared-flag.ts";

/** A flag that is not what it was. Absent on one side: it came, or it is no more. */
export type FlagChange = {
  key: string;
  before: CompiledFlag | undefined;
  after: CompiledFlag | undefined;
};

/** What somebody who knows the values of before must hear to know those of now. */
export type ValuesChange = {
  /** The values that are new or different, by flag key. */
  changed: readonly (readonly [key: string, value: boolean])[];
  /** The keys of flags that are no more. */
  removed: readonly string[];
};

/**
 * The flags in which two views differ, in the order of the keys, the removed ones last. Only the segments
 * that the views do not share are compared.
 */
export function flagChanges(before: EnvironmentView, after: EnvironmentView): FlagChange[] {
  const [removed, added] = withoutSharedEnds(
    unsharedFlags(before, after),
    unsharedFlags(after, before),
  );
  const changes: FlagChange[] = [];
  const earlier = new Map(removed.map(({ compiled }) => [compiled.key, compiled]));
  for (const { compiled } of added) {
    const { key } = compiled;
    const known = earlier.get(key);
    earlier.delete(key);
    if (known !== compiled) changes.push({ key, before: known, after: compiled });
  }
  for (const [key, flag] of earlier) changes.push({ key, before: flag, after: undefined });
  return changes;
}

/** The flags of a view in the segments that the other view does not have. */
function unsharedFlags(view: EnvironmentView, other: EnvironmentView): PreparedFlag[] {
  const shared = new Set(other.segments);
  return view.segments
    .filter((segment) => !shared.has(segment))
    .flatMap((segment) => segment.flags);
}

/** Two lists without what both begin and end with: mostly one flag of a segment has changed. */
function withoutSharedEnds<T>(some: readonly T[], others: readonly T[]): [T[], T[]] {
  const shorter = Math.min(some.length, others.length);
  let begin = 0;
  while (begin < shorter && some[begin] === others[begin]) begin += 1;
  let end = 0;
  while (end < shorter - begin && some.at(-1 - end) === others.at(-1 - end)) end += 1;
  return [some.slice(begin, some.length - end), others.slice(begin, others.length - end)];
}

/** What these changes mean for somebody; undefined when all values are as they were. */
export function valuesChangeFor(
  context: EvaluationContext,
  changes: readonly FlagChange[],
): ValuesChange | undefined {
  return valuesChangeOf((flag) => flag.evaluate(context).value, changes);
}

/** The same, one condition after the other: for those who stop in between to serve others. */
export function* valuesChangeInSteps(
  context: EvaluationContext,
  changes: readonly FlagChange[],
): Generator<undefined, ValuesChange | undefined> {
  const values = new Map<CompiledFlag, boolean>();
  for (const { before, after } of changes) {
    if (after === undefined) continue;
    for (const flag of before === undefined ? [after] : [after, before])
      values.set(flag, (yield* evaluateInSteps(flag, context)).value);
  }
  return valuesChangeOf((flag) => values.get(flag) === true, changes);
}

function valuesChangeOf(
  valueFor: (flag: CompiledFlag) => boolean,
  changes: readonly FlagChange[],
): ValuesChange | undefined {
  const changed: [string, boolean][] = [];
  const removed: string[] = [];
  for (const { key, before, after } of changes) {
    if (after === undefined) {
      removed.push(key);
      continue;
    }
    const value = valueFor(after);
    if (before === undefined || valueFor(before) !== value) changed.push([key, value]);
  }
  return changed.length === 0 && removed.length === 0 ? undefined : { changed, removed };
}

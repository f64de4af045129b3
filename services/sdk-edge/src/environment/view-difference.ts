import { type CompiledFlag, type EvaluationContext, evaluateInSteps } from "@halyard/evaluation";
import type { EnvironmentView } from "./environment-view.ts";

/** A flag that is not what it was. Absent on one side: it came, or it is no more. */
export type FlagChange = {
  key: string;
  before: CompiledFlag | undefined;
  after: CompiledFlag | undefined;
};

/** What somebody who knows the values of before must hear to know those of now. */
export type ValuesDifference = {
  /** The values that are new or different, by flag key. */
  changed: readonly (readonly [key: string, value: boolean])[];
  /** The keys of flags that are no more. */
  removed: readonly string[];
};

/** The flags in which two views differ, in the order of the keys, those that are no more last. */
export function flagChanges(before: EnvironmentView, after: EnvironmentView): FlagChange[] {
  const changes: FlagChange[] = [];
  for (const flag of after.flags) {
    const earlier = before.find(flag.key);
    if (earlier !== flag) changes.push({ key: flag.key, before: earlier, after: flag });
  }
  for (const key of removedKeys(before, after))
    changes.push({ key, before: before.find(key), after: undefined });
  return changes;
}

/** What these changes mean for somebody; undefined when all values are as they were. */
export function differenceFor(
  context: EvaluationContext,
  changes: readonly FlagChange[],
): ValuesDifference | undefined {
  return differenceOf((flag) => flag.evaluate(context).value, changes);
}

/** The same, one condition after the other: for those who stop in between to serve others. */
export function* differenceInSteps(
  context: EvaluationContext,
  changes: readonly FlagChange[],
): Generator<undefined, ValuesDifference | undefined> {
  const values = new Map<CompiledFlag, boolean>();
  for (const { before, after } of changes) {
    if (after === undefined) continue;
    for (const flag of before === undefined ? [after] : [after, before])
      values.set(flag, (yield* evaluateInSteps(flag, context)).value);
  }
  return differenceOf((flag) => values.get(flag) === true, changes);
}

function differenceOf(
  valueFor: (flag: CompiledFlag) => boolean,
  changes: readonly FlagChange[],
): ValuesDifference | undefined {
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

/** The keys of the flags that one view has and another has not. */
export function removedKeys(before: EnvironmentView, after: EnvironmentView): string[] {
  const removed: string[] = [];
  for (const { key } of before.flags) if (after.find(key) === undefined) removed.push(key);
  return removed;
}

import type { Dependent, GetDependentsAnswer } from "../api/schema.d.ts";
import { itemsText } from "../state/words.ts";

/** A switch of a flag in an environment. */
type Switched = { environmentId: string; enabled: boolean };

/** Returns the flags that are on in the environment and need the other position of the switch. */
export const affectedBy = (
  dependents: readonly Dependent[],
  { environmentId, enabled }: Switched,
): readonly Dependent[] =>
  dependents.filter(
    (dependent) =>
      dependent.environment_id === environmentId &&
      dependent.enabled &&
      (enabled ? dependent.is === "off" : dependent.is !== "off"),
  );

/** Warns that a switch turns off other flags too. Returns undefined if no flag is affected. */
export function dependentsWarning(
  flagKey: string,
  { dependents, total }: GetDependentsAnswer,
  switched: Switched,
): string | undefined {
  const keys = [
    ...new Set(affectedBy(dependents, switched).map(({ flag_key }) => flag_key)),
  ].toSorted();
  if (keys.length === 0) return undefined;
  const known = keys.length === 1 ? "1 flag" : `${keys.length} flags`;
  const flags = total > dependents.length ? `at least ${known}` : known;
  const position = switched.enabled ? "on" : "off";
  return `Turning ${flagKey} ${position} also turns off ${flags}, or those of their rules that require it: ${itemsText(keys, "and")}.`;
}

/** Describes the path from a dependent to the required flag: "a requires b, which requires c". */
export function pathText([first = "", ...others]: readonly string[]): string {
  return `${first} requires ${others.join(", which requires ")}`;
}

import type { Readers } from "../api/schema.d.ts";
import type { State } from "./flag-state.ts";
import { joined } from "./words.ts";

/** The SDKs that evaluate flags in applications, and what a state needs of them. */

type Reader = Pick<Readers["readers"][number], "name" | "version" | "knows">;

/** Returns the features that an SDK must support to evaluate a state, as rule sets name them. */
export function needsOf(state: State): string[] {
  const { bucket_by: attribute, bucket_seed: seed, targeting_rules: rules } = state;
  const percentages = [state, ...rules].map((each) => each.rollout_percentage ?? 0);
  const hasBuckets = attribute !== undefined || seed !== undefined;
  return [
    ...(hasBuckets || !percentages.every(Number.isInteger) ? ["buckets"] : []),
    ...(rules.some((rule) => rule.conditions.some(({ match_case }) => match_case === true))
      ? ["match-case"]
      : []),
    ...(state.serve === undefined ? [] : ["values"]),
  ];
}

/**
 * Returns what a change adds to the needs of a flag. Whether the flag is on makes no difference: an SDK that lacks a
 * feature does not find the flag, and returns the application's default.
 */
export function addedNeeds(before: State, after: State): string[] {
  const former = needsOf(before);
  return needsOf(after).filter((need) => !former.includes(need));
}

/**
 * Warns about the SDKs that will no longer find a flag after a change, because they do not support what it then needs.
 * `readers` is undefined if the SDKs could not be read. Returns undefined if the change affects no SDK.
 */
export function readersWarning(
  before: State,
  after: State,
  readers: readonly Reader[] | undefined,
): string | undefined {
  const added = addedNeeds(before, after);
  if (added.length === 0) return undefined;
  if (readers === undefined)
    return "Older SDKs do not support this change, and applications with them will use their own default for the flag. Halyard could not read which SDKs the applications of this environment have.";
  const lacking = readers.filter(({ knows }) => added.some((need) => !knows.includes(need)));
  if (lacking.length === 0) return undefined;
  const names = joined(
    lacking.map(({ name, version }) => `${name} ${version}`),
    "and",
  );
  return `Applications with ${names} read flags of this environment in the last days. They do not support this change, and will use their own default for the flag.`;
}

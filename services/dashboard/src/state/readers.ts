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
 * Returns the features that an SDK must support for a change to reach its users: what the change adds to the needs of
 * the flag, or all needs if it turns the flag on. An SDK that lacks one does not find the flag, on or off, and returns
 * the application's default.
 */
export function neededFor(before: State, after: State): string[] {
  const isTurnedOn = after.enabled && !before.enabled;
  const former = isTurnedOn ? [] : needsOf(before);
  return needsOf(after).filter((need) => !former.includes(need));
}

/** The warning if the SDKs of the applications, or what a flag needs of them, could not be read. */
export const unreadWarning =
  "Halyard could not read which SDKs lack what this change needs. Applications with such an SDK will use their own default for the flag.";

/**
 * Warns about the SDKs that do not find a flag after a change, because they do not support what it then needs.
 * `readers` is undefined if the SDKs could not be read. Returns undefined if the change affects no SDK.
 */
export function readersWarning(
  before: State,
  after: State,
  readers: readonly Reader[] | undefined,
): string | undefined {
  const needed = neededFor(before, after);
  if (needed.length === 0) return undefined;
  if (readers === undefined) return unreadWarning;
  const lacking = readers.filter(({ knows }) => needed.some((need) => !knows.includes(need)));
  if (lacking.length === 0) return undefined;
  const names = joined(
    lacking.map(({ name, version }) => `${name} ${version}`),
    "and",
  );
  return `Applications with ${names} read flags of this environment in the last days. They do not support what this change needs, and will use their own default for the flag.`;
}

import type { Audience, Condition, Readers } from "../api/schema.d.ts";
import type { State } from "./flag-state.ts";
import { joined } from "./words.ts";

/** The SDKs that evaluate flags in applications, and what a state needs of them. */

type Reader = Pick<Readers["readers"][number], "name" | "version" | "knows">;

/** The audiences of the project by key, as far as they are known. */
export type Audiences = ReadonlyMap<string, Pick<Audience, "match" | "list">>;

const noAudiences: Audiences = new Map();

/** Returns the keys of the audiences in the rules of a state, each once. */
export const audiencesIn = ({
  targeting_rules: rules,
}: Pick<State, "targeting_rules">): string[] => [
  ...new Set(
    rules.flatMap(({ conditions }) =>
      conditions.flatMap((condition) => ("audience" in condition ? condition.audience : [])),
    ),
  ),
];

/** Returns the features that an SDK must support to evaluate a state, as rule sets name them. */
export function needsOf(state: State, audiences: Audiences = noAudiences): string[] {
  const { bucket_by: attribute, bucket_seed: seed, targeting_rules: rules } = state;
  const percentages = [state, ...rules].map((each) => each.rollout_percentage ?? 0);
  const hasBuckets = attribute !== undefined || seed !== undefined;
  const used = audiencesIn(state);
  const found = used.flatMap((key) => audiences.get(key) ?? []);
  const own = rules.flatMap(({ conditions }) => conditions);
  const conditions: Condition[] = [...own, ...found.flatMap(({ match }) => match.flat())];
  const isRequiring = (state.requires ?? []).length > 0 || own.some((each) => "flag" in each);
  const needs: Readonly<Record<string, boolean>> = {
    audiences: used.length > 0,
    buckets: hasBuckets || !percentages.every(Number.isInteger),
    lists: found.some(({ list }) => list !== null),
    "match-case": conditions.some((each) => "attribute" in each && each.match_case === true),
    requires: isRequiring,
    values: state.serve !== undefined,
  };
  return Object.keys(needs).filter((need) => needs[need]);
}

/**
 * Returns the features that an SDK must support for a change to reach its users: what the change adds to the needs of
 * the flag, or all needs if it turns the flag on. An SDK that lacks one does not find the flag, on or off, and returns
 * the application's default.
 */
export function neededFor(before: State, after: State, audiences?: Audiences): string[] {
  const isTurnedOn = after.enabled && !before.enabled;
  const former = isTurnedOn ? [] : needsOf(before, audiences);
  return needsOf(after, audiences).filter((need) => !former.includes(need));
}

/** The warning if the SDKs of the applications, or what a flag needs of them, could not be read. */
export const unreadWarning =
  "Halyard could not read which SDKs lack what this change needs. Applications with such an SDK will use their own default for the flag.";

/**
 * Warns about the SDKs that do not find a flag after a change, because they do not support what it then needs.
 * `needed` is the result of `neededFor`. `readers` is undefined if the SDKs could not be read. Returns undefined if the
 * change affects no SDK.
 */
export function readersWarning(
  needed: readonly string[],
  readers: readonly Reader[] | undefined,
): string | undefined {
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

import type { UpdateFlagState } from "../api/schema.d.ts";
import {
  changed,
  type Difference,
  requirementDifferences,
  ruleDifferences,
  serveDifferences,
} from "./difference.ts";
import type { State } from "./flag-state.ts";
import { offText, serveText } from "./serve.ts";
import { requirementText, rulesTexts } from "./words.ts";

type Member<Value> = {
  /** Names the member. */
  readonly label: string;
  /** Returns the differences between two values; none if users get the same. */
  readonly differences: (before: Value, after: Value) => Difference[];
  /** Describes a value, one line for each fact. */
  readonly texts: (value: Value) => string[];
  /** Value in a request that removes the member. Undefined: requests leave the member out. */
  readonly removal: undefined extends Value ? null | readonly [] | undefined : undefined;
};

/** The members of a state, the most important first. A member that the API adds does not compile until it is here. */
const members: { readonly [Name in keyof State]-?: Member<State[Name]> } = {
  enabled: {
    label: "State",
    differences: (before, after) => changed("State", before ? "on" : "off", after ? "on" : "off"),
    texts: (enabled) => [enabled ? "On" : "Off"],
    removal: undefined,
  },
  rollout_percentage: {
    label: "Percentage",
    differences: (before, after) => changed("Percentage", `${before} %`, `${after} %`),
    texts: (percentage) => [`Percentage of the flag: ${percentage} %`],
    removal: undefined,
  },
  targeting_rules: {
    label: "Rules",
    differences: ruleDifferences,
    texts: rulesTexts,
    removal: undefined,
  },
  requires: {
    label: "Required flags",
    differences: requirementDifferences,
    texts: (requires = []) => requires.map((each) => `Requires ${requirementText(each)}`),
    removal: [],
  },
  bucket_by: {
    label: "Percentages by",
    differences: (before = "id", after = "id") => changed("Percentages by", before, after),
    texts: (attribute) => (attribute === undefined ? [] : [`Percentages by ${attribute}`]),
    removal: null,
  },
  bucket_seed: {
    label: "Seed of percentages",
    differences: (before = "the flag's key", after = "the flag's key") =>
      changed("Seed of percentages", before, after),
    texts: (seed) => (seed === undefined ? [] : [`Seed of percentages: ${seed}`]),
    removal: null,
  },
  serve: {
    label: "Served",
    differences: serveDifferences,
    texts: (serve) => (serve === undefined ? [] : [`Served: ${serveText(serve)}`]),
    removal: undefined,
  },
  off_variation: {
    label: "All others get",
    differences: (before, after) => changed("All others get", offText(before), offText(after)),
    texts: (off) => (off === undefined ? [] : [`All others get ${offText(off)}`]),
    removal: undefined,
  },
};

export type MemberName = keyof State;
export const memberNames = Object.keys(members) as MemberName[];
const memberOf = (name: MemberName) => members[name] as Member<unknown>;

export const labelOf = (name: MemberName): string => memberOf(name).label;

const differencesIn = <Name extends MemberName>(
  name: Name,
  before: Pick<State, Name>,
  after: Pick<State, Name>,
): Difference[] => memberOf(name).differences(before[name], after[name]);

/** Returns which of the members differ between two values. */
export const differingMembers = <Name extends MemberName>(
  before: Pick<State, Name>,
  after: Pick<State, Name>,
  names: readonly Name[],
): Name[] => names.filter((name) => differencesIn(name, before, after).length > 0);

/** Returns the differences between two states of a flag, the most important first. */
export const stateDifferences = (before: State, after: State): Difference[] =>
  memberNames.flatMap((name) => differencesIn(name, before, after));

/** Describes a whole state, one line for each fact. */
export const stateTexts = (state: State): string[] =>
  memberNames.flatMap((name) => memberOf(name).texts(state[name]));

/** Returns the state in a value that has further members, with the members in the order of this file. */
export const stateIn = (value: State): State =>
  Object.fromEntries(
    memberNames.filter((name) => name in value).map((name) => [name, value[name]]),
  ) as State;

/** Returns whether two values have the same state, including what changes nothing for users, such as ids of rules. */
export const isSameState = (one: State, other: State): boolean =>
  JSON.stringify(stateIn(one)) === JSON.stringify(stateIn(other));

/** Returns the state in an entry of the audit log, or undefined if the entry has none. */
export const stateFrom = (values: Record<string, unknown> | null): State | undefined =>
  values !== null && "targeting_rules" in values ? stateIn(values as State) : undefined;

/** Returns the request that sets members of a state to the values of another one. */
export const requestFor = (state: State, names: readonly MemberName[] = memberNames) =>
  Object.fromEntries(
    names
      .map((name) => [name, state[name] === undefined ? memberOf(name).removal : state[name]])
      .filter(([, value]) => value !== undefined),
  ) as UpdateFlagState;

import type { ContentOptions, SnapshotFlag } from "../system/snapshot-content.ts";

/** Flags that every library and server can express: constant, rules on country and plan, and rollouts. */
export type TargetedFlag =
  | { key: string; kind: "constant"; on: boolean }
  | { key: string; kind: "rules"; countries: readonly string[]; plan: string }
  | { key: string; kind: "rollout"; percentage: number };

export type FlagKind = TargetedFlag["kind"];
export const flagKinds: readonly FlagKind[] = ["constant", "rules", "rollout"];

/** Returns flags of the given kinds in turn; of all three kinds by default. */
export function targetedFlags(count: number, kinds = flagKinds): TargetedFlag[] {
  return Array.from({ length: count }, (_, number) =>
    targetedFlag(number, kinds[number % kinds.length] as FlagKind),
  );
}

export const countries = [
  ...["DE", "FR", "IT", "ES", "PL", "NL"],
  ...["SE", "US", "CA", "BR", "JP", "IN"],
];
export const plans = ["pro", "pro", "pro", "free"];
/** Two thirds of the countries and three quarters of the plans: half of all users. */
const listedCountries = 8;

function targetedFlag(number: number, kind: FlagKind): TargetedFlag {
  const key = `checkout-flow-variant-${number}`;
  if (kind === "constant") return { key, kind, on: number % 2 === 0 };
  if (kind === "rollout") return { key, kind, percentage: 50 };
  const places = [...countries, ...countries].slice(number % countries.length);
  // Each flag has its own list, so that results cannot be shared between flags.
  const listed = [...places.slice(0, listedCountries), `X${number}`];
  return { key, kind, countries: listed, plan: "pro" };
}

/**
 * A flag with texts as values: a split of two for the users in its rollout, and a third one for all others.
 */
export type SplitFlag = { key: string; kind: "split"; percentage: number };
export type AnyFlag = TargetedFlag | SplitFlag;

/** Options of a snapshot with the flags. */
export const contentOf = (flags: readonly AnyFlag[]): ContentOptions => ({
  flagsPerEnvironment: flags.length,
  flagState: (number) => flagState(flags[number] as AnyFlag),
});

/** Returns the flags with a split of three colors in place of each rollout. */
export function withColors(flags: readonly TargetedFlag[]): AnyFlag[] {
  return flags.map((flag) => (flag.kind === "rollout" ? { ...flag, kind: "split" } : flag));
}

/** The weights of the colors in the rollout, in percent. */
export const colorWeights = { blue: 60, green: 40 };
export const colorOtherwise = "red";
export const colorKeys = [...Object.keys(colorWeights), colorOtherwise];

/** Returns the share of each color among all users, in percent. */
export function colorShares({ percentage }: SplitFlag): Record<string, number> {
  const inRollout = Object.entries(colorWeights).map(([key, weight]) => [
    key,
    (percentage * weight) / 100,
  ]);
  return { ...Object.fromEntries(inRollout), [colorOtherwise]: 100 - percentage };
}

const colors = {
  value_type: "string" as const,
  variations: colorKeys.map((key) => ({ key, json: JSON.stringify(key) })),
  off_variation: colorOtherwise,
  serve: {
    split: [
      { variation: "blue", weight: colorWeights.blue, ranges: [[0, 6_000] satisfies Range] },
      { variation: "green", weight: colorWeights.green, ranges: [[6_000, 10_000] satisfies Range] },
    ],
  },
};

type Range = [from: number, to: number];

export function flagState(flag: AnyFlag): SnapshotFlag {
  const everyone = { key: flag.key, enabled: true, rollout_percentage: 100, targeting_rules: [] };
  if (flag.kind === "constant") return { ...everyone, enabled: flag.on };
  if (flag.kind === "rollout") return { ...everyone, rollout_percentage: flag.percentage };
  if (flag.kind === "split") return { ...everyone, rollout_percentage: flag.percentage, ...colors };
  const value = [...flag.countries];
  const country = { attribute: "country", operator: "in" as const, value };
  const plan = { attribute: "plan", operator: "equals" as const, value: flag.plan };
  return { ...everyone, targeting_rules: [{ conditions: [country, plan] }] };
}

/** A user: an id and four attributes. The flags use two of them. */
export type User = {
  user_id: string;
  country: string;
  plan: string;
  app_version: string;
  age: number;
};

/** All ids have the same length, so that all requests have the same length. */
const digits = 8;

function idOf(number: number): string {
  return `user-${String(number).padStart(digits, "0")}`;
}

export const userOf = (number: number): User => userNamed(idOf(number), number);

/** The combinations repeat late, and do not correlate with the numbers of flags. */
export function userNamed(user_id: string, number: number): User {
  return {
    user_id,
    country: countries[(number * 7) % countries.length] as string,
    plan: plans[Math.floor(number / countries.length) % plans.length] as string,
    app_version: `3.${10 + (number % 80)}.1`,
    age: 18 + (number % 60),
  };
}

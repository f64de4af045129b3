import type { SnapshotFlag } from "../system/snapshot-content.ts";

/**
 * Flags that every library and server can express: constant, rules on country and plan, and rollouts.
 */
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
  switch (kind) {
    case "constant":
      return { key, kind, on: number % 2 === 0 };
    case "rollout":
      return { key, kind, percentage: 50 };
    case "rules": {
      const listed = Array.from(
        { length: listedCountries },
        (_, index) => countries[(number + index) % countries.length] as string,
      );
      return { key, kind, countries: [...listed, unusedCountry(number)], plan: "pro" };
    }
  }
}

/** Each flag has its own list, so that results cannot be shared between flags. */
function unusedCountry(number: number): string {
  return `X${number}`;
}

/** Returns the state of a flag in an environment. */
export function flagState(flag: TargetedFlag): SnapshotFlag {
  const everyone = { key: flag.key, enabled: true, rollout_percentage: 100, targeting_rules: [] };
  switch (flag.kind) {
    case "constant":
      return { ...everyone, enabled: flag.on };
    case "rollout":
      return { ...everyone, rollout_percentage: flag.percentage };
    case "rules":
      return {
        ...everyone,
        targeting_rules: [
          {
            conditions: [
              { attribute: "country", operator: "in", value: [...flag.countries] },
              { attribute: "plan", operator: "equals", value: flag.plan },
            ],
          },
        ],
      };
  }
}

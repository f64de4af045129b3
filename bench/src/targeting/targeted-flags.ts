import type { SnapshotFlag } from "../system/snapshot-content.ts";

/**
 * Flags in words that every library and server here can be told in its own: one that is the same for
 * everyone, one for some countries and one plan, and one for a share of the users.
 */
export type TargetedFlag =
  | { key: string; kind: "constant"; on: boolean }
  | { key: string; kind: "rules"; countries: readonly string[]; plan: string }
  | { key: string; kind: "rollout"; percentage: number };

export type FlagKind = TargetedFlag["kind"];

export const flagKinds: readonly FlagKind[] = ["constant", "rules", "rollout"];

/** So many flags of some kinds in turn; of all three kinds unless told otherwise. */
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
/** Two in three countries and three in four users of a plan: half of all users. */
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
      return { key, kind, countries: [...listed, ofNobody(number)], plan: "pro" };
    }
  }
}

/** No two flags have the same list, so that asking one says nothing about another. */
function ofNobody(number: number): string {
  return `X${number}`;
}

/** The flag as it is set in one of our environments. */
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

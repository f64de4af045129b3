import fc from "fast-check";
import {
  type AttributeCondition,
  type Attributes,
  type AttributeValue,
  canMatchCase,
  type OperatorName,
  operatorNames,
  type ResolvedState,
  type Scalar,
  type Serve,
  sizeOf,
  type TargetingRule,
} from "../src/index.ts";

/**
 * Values of random flags and contexts. There are few values of each kind, so that conditions often hold. The values are
 * similar, so that conditions often nearly hold. Occasionally a value is of another kind.
 */
const pools = {
  text: [
    ...["DE", "de", "at", "DE,at", " de , ,AT,", ",", "", " ", "pro", "Pro ", "professional", "o"],
    ...[
      "straße",
      "STRASSE",
      "STRAẞE",
      "ſtraße",
      "K",
      "k",
      "\u212a",
      "İ",
      "i",
      "ΣΑΣ",
      "σας",
      "𐐀",
      "𐐨",
    ],
    ...[5, 1.5, true, false, "5", "TRUE", "tru"],
  ],
  pattern: ["^d", "(?i)^D", "e$", "[a-e]+", "(", "^$", "^[0-9.]+$", "p.o", "", "true", "de", "5"],
  number: [
    ...[
      "5",
      "5.0",
      "+5",
      "05",
      ".5e1",
      "-0",
      "0",
      "0x5",
      " 5",
      "1e400",
      "NaN",
      "true",
      "1_0",
      "5.",
    ],
    ...[0, 5, 5.5, -1, 6, true],
  ],
  instant: [
    ...["2027-01-31T09:00:00Z", "2027-01-31T10:00:00+01:00", "2027-01-31T09:00:00.000999Z"],
    ...["2027-01-31T09:00:00.001Z", "2027-01-31", "2027-01-31T09:00:00", "2027-13-01T00:00:00Z"],
    ...["2027-01-31T09:00:00.01Z", "2027-01-31T09:00:00.1Z", "2027-01-31T09:00:01Z", 1801386000000],
  ],
  version: [
    ...["1", "1.2", "v1.2", "1.2.0", "1.2.0+build.7", "1.2.0-rc.1", "1.2-rc.1", "1.2.0-rc.10"],
    ...["1.2.0-1", "1.2.0-01", "1.2.0-", "1.10.0", "99999999999999999999.0.0", "1.2.0-rc.1.1"],
    ...["V1.2", "01.2.0", "1.2.0-alpha", "1.2.0-rc", "1.2.0-rc.1.0", "1.2.0-2", 1.2, 1],
  ],
} satisfies Record<string, Scalar[]>;

type Kind = keyof typeof pools;

/** Names of the attribute `id` in rules. */
export const namesOfId = ["id", "user_id", "targetingKey"];

/** Some names are also names of members that every object has. They must behave like any other name. */
const kinds: Record<Kind, { operators: readonly OperatorName[]; names: readonly string[] }> = {
  text: {
    operators: [
      ...(["equals", "not_equals", "contains", "not_contains"] as const),
      ...(["starts_with", "ends_with", "in", "not_in"] as const),
    ],
    names: [...namesOfId, "country", "__proto__"],
  },
  pattern: { operators: ["matches_regex"], names: ["country", "constructor"] },
  number: { operators: ["gt", "gte", "lt", "lte"], names: ["age"] },
  instant: { operators: ["gt", "gte", "lt", "lte"], names: ["since"] },
  version: {
    operators: ["semver_eq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"],
    names: ["version"],
  },
};
const kindNames = Object.keys(kinds) as Kind[];

const anyScalar: fc.Arbitrary<Scalar> = fc.oneof(
  fc.constantFrom(...Object.values(pools).flat()),
  // No lone surrogates: the regular expressions of the reference evaluator do not match them.
  fc.string({ unit: "grapheme", maxLength: 6 }),
);

function valuesOf(kind: Kind): fc.Arbitrary<AttributeValue> {
  const scalar = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom<Scalar[]>(...pools[kind]) },
    { weight: 1, arbitrary: anyScalar },
  );
  return fc.oneof(
    { weight: 5, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(scalar, { maxLength: 4 }) },
  );
}

function conditionsOf(kind: Kind): fc.Arbitrary<AttributeCondition> {
  return fc
    .record({
      attribute: fc.constantFrom(...kinds[kind].names),
      operator: fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom(...kinds[kind].operators) },
        { weight: 1, arbitrary: fc.constantFrom(...operatorNames) },
      ),
      value: valuesOf(kind),
      matchesCase: fc.integer({ min: 0, max: 3 }),
    })
    .map(({ matchesCase, ...condition }) =>
      matchesCase === 0 && canMatchCase(condition.operator)
        ? { ...condition, match_case: true }
        : condition,
    );
}

/** Any comparison of an attribute. */
export const comparisons = fc.oneof(...kindNames.map(conditionsOf));

/** One condition, and one value of the attribute to which it refers. */
export const conditionValuePairs: fc.Arbitrary<[AttributeCondition, AttributeValue]> = fc.oneof(
  ...kindNames.map((kind) => fc.tuple(conditionsOf(kind), valuesOf(kind))),
);

const percentage = fc.oneof(
  fc.constantFrom(0, 100),
  fc.integer({ min: 0, max: 100 }),
  fc.integer({ min: 0, max: 10_000 }).map((hundredths) => hundredths / 100),
);

const rule: fc.Arbitrary<TargetingRule> = fc.record(
  {
    conditions: fc.array(comparisons, { maxLength: 3 }),
    value: fc.boolean(),
    rollout_percentage: percentage,
  },
  { requiredKeys: ["conditions"] },
);

export const flags: fc.Arbitrary<ResolvedState> = fc.record(
  {
    key: fc.stringMatching(/^[a-z]{1,9}$/),
    enabled: fc.integer({ min: 0, max: 9 }).map((chance) => chance > 0),
    rollout_percentage: percentage,
    targeting_rules: fc.oneof(
      { weight: 19, arbitrary: fc.array(rule, { maxLength: 5, size: "max" }) },
      { weight: 1, arbitrary: fc.array(rule, { minLength: 15, maxLength: 30, size: "max" }) },
    ),
    bucket_by: fc.constantFrom("country", "age", "since", "__proto__"),
    bucket_seed: fc.stringMatching(/^[a-z]{1,9}$/),
  },
  { requiredKeys: ["key", "enabled", "rollout_percentage", "targeting_rules"] },
);

export const variationKeys = ["red", "blue", "green"];

/** A split of random sizes, whose shares lie anywhere. */
const splits: fc.Arbitrary<Serve> = fc
  .tuple(
    fc.uniqueArray(fc.integer({ min: 1, max: 9_999 }), { minLength: 1, maxLength: 6 }),
    fc.integer({ min: 0, max: 2 }),
  )
  .map(([cuts, shift]) => {
    const ends = [...cuts.sort((a, b) => a - b), 10_000];
    const ranges = ends.map((to, index) => [ends[index - 1] ?? 0, to] as const);
    const split = variationKeys.map((variation, position) => {
      const own = ranges.filter((_, index) => (index + shift) % variationKeys.length === position);
      return { variation, weight: sizeOf(own) / 100, ranges: own };
    });
    return { split };
  });

const serves: fc.Arbitrary<Serve> = fc.oneof(
  splits,
  fc.constantFrom(...variationKeys).map((variation) => ({ variation })),
);

/** Typed flags, whose variations have keys and no values. */
export const typedFlags: fc.Arbitrary<ResolvedState> = fc
  .tuple(
    flags,
    serves,
    fc.constantFrom(...variationKeys, null),
    fc.array(fc.option(serves, { nil: undefined })),
  )
  .map(([flag, serve, off_variation, ofRules]) => ({
    ...flag,
    value_type: "string",
    variations: variationKeys.map((key) => ({ key })),
    serve,
    off_variation,
    targeting_rules: flag.targeting_rules.map((given, index) =>
      given.value === false || ofRules[index] === undefined
        ? given
        : { ...given, serve: ofRules[index] },
    ),
  }));

export const ids: fc.Arbitrary<string | number> = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.uuid(),
  fc.integer(),
);

export const contexts: fc.Arbitrary<Attributes> = fc
  .record({
    id: fc.option(fc.oneof(ids, fc.constantFrom("DE", "k", "pro", 5)), { nil: undefined, freq: 6 }),
    others: fc.array(
      fc.oneof(
        ...kindNames.map((kind) => fc.tuple(fc.constantFrom(...kinds[kind].names), valuesOf(kind))),
      ),
      { minLength: 2, maxLength: 8 },
    ),
  })
  .map(({ id, others }) => {
    const given = others.filter(([name]) => name !== "id" && name !== "user_id");
    const attributes = new Map<string, AttributeValue>(given);
    if (id !== undefined) attributes.set("id", id);
    return attributes;
  });

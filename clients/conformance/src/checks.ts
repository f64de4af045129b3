/** The format of a case file, and the requests to an evaluator that check a case. */

type Scalar = string | number | boolean;
type AttributeValue = Scalar | readonly Scalar[] | null;

/** The attributes of a user, as one JSON object. */
export type Context = { readonly [attribute: string]: AttributeValue };

/** A condition of a rule: a comparison, the membership in an audience, or the value of another flag. */
export type Condition = Comparison | { audience: string } | Requirement;

/** A comparison of an attribute. Some cases contain operators that do not exist. */
export type Comparison = {
  attribute: string;
  operator: string;
  value: Scalar | readonly Scalar[];
  match_case?: boolean;
};

/** A flag, and the values that it may have: on, off, or one of some variations. */
export type Requirement = { flag: string; is: "on" | "off" | readonly string[] };

/** A named set of users. A user is in it if all conditions of an alternative hold, or if the list has the user. */
export type Audience = {
  match: readonly (readonly Comparison[])[];
  list?: AudienceList;
};

/** A list has fingerprints in place of its entries. */
export type AudienceList = {
  attribute: string;
  /** Number of entries. */
  count: number;
  /** Key of the fingerprints, 16 bytes in hexadecimal digits. */
  key: string;
  /** SHA-256 of each chunk. A chunk has the fingerprints with the same leading bits, in ascending order. */
  chunks: readonly string[];
};

/** The audiences and flags that a flag can refer to. */
export type Environment = {
  /** Other flags. */
  flags: readonly Flag[];
  /** Audiences by key. Keys such as `constructor` are own members. */
  audiences: { readonly [key: string]: Audience };
  /** Chunks of lists by SHA-256, in hexadecimal digits. Some cases lack a chunk. */
  chunks: { readonly [sha256: string]: string };
};

/** A value of a typed flag. Names such as `__proto__` are own members of objects. */
export type TypedValue = string | number | object;

export type Range = readonly [from: number, to: number];

/** The share of a variation in a split. */
export type Share = {
  variation: string;
  /** Percentage with at most two decimals. */
  weight: number;
  /** Half-open ranges of buckets. */
  ranges: readonly Range[];
};

/** The served value of a typed flag: one variation, or a split by bucket. */
export type Serve = { variation: string } | { split: readonly Share[] };

export type TargetingRule = {
  id?: string;
  name?: string;
  conditions: readonly Condition[];
  value?: boolean;
  rollout_percentage?: number;
  serve?: Serve;
};

/** A flag in one environment, with the field names of rule sets. */
export type Flag = {
  key: string;
  enabled: boolean;
  rollout_percentage: number;
  targeting_rules: readonly TargetingRule[];
  bucket_by?: string;
  bucket_seed?: string;
  /** Absent for a boolean flag. Some cases contain types that do not exist. */
  value_type?: string;
  variations?: readonly { key: string; value: TypedValue }[];
  serve?: Serve;
  off_variation?: string | null;
  /** Other flags that must have these values for the same user. */
  requires?: readonly Requirement[];
  /** Features that an evaluator must support. Without one of them, the flag counts as not found. */
  needs?: readonly string[];
};

/** The result of an evaluation. `value` and `variation` are null for the default of the application. */
export type Outcome = {
  value: boolean | TypedValue | null;
  variation: string | null;
  reason: "static" | "split" | "targeting_match" | "default" | "disabled" | "prerequisite_failed";
};

/** A request to an evaluator. The field names are those of the protocol of `halyard-conformance`. */
export type Request =
  | ({ op: "evaluate"; flag: Flag; context: Context } & Partial<Environment>)
  | { op: "bucket"; flag_key: string; user_id: string }
  | { op: "split_bucket"; seed: string; unit: string }
  | { op: "allocate_ranges"; before: readonly Allocated[]; weights: readonly Weight[] }
  | { op: "hash"; bytes_hex: string; seed_hex: string }
  | { op: "fingerprint"; key_hex: string; text: string }
  | { op: "validate_rules"; targeting_rules: readonly TargetingRule[] }
  | { op: "read_context"; json: string; on_invalid: "reject" | "ignore" };

/** The buckets of a variation before a change of weights. */
export type Allocated = Pick<Share, "variation" | "ranges">;
export type Weight = Pick<Share, "variation" | "weight">;

export type Operation = Request["op"];

/** The expected result: one JSON value, or a JSON pointer to any part of the rules. */
export type Expected = { readonly result: unknown } | { readonly anyPointer: true };

/** One request and its expected result. A case has one or more. */
export type Check = {
  readonly request: Request;
  /** The request as ASCII JSON. Numbers have the notation of the case file, such as `5.0` and `1e2`. */
  readonly requestJson: string;
  readonly expected: Expected;
};

type Checked = { name: string; checks: Omit<Check, "requestJson">[] };

type ConditionCase = {
  name: string;
  given?: AttributeValue;
  operator: string;
  value: Scalar | Scalar[];
  holds: boolean;
  malformed?: true;
};
type EvaluationCase = Partial<Environment> & {
  name: string;
  flag: Flag;
  context: Context;
  /** Null: the flag counts as not found. */
  expect: Outcome | null;
  malformed?: true;
};
type BucketCase = { name: string; flag_key: string; user_id: string; bucket: number };
type SplitBucketCase = { name: string; seed: string; unit: string; bucket: number };
type AllocationCase = { name: string; before: Allocated[]; weights: Weight[]; split: Share[] };
type HashCase = { name: string; bytes_hex: string; seed_hex: string; hash_hex: string };
type FingerprintCase = {
  name: string;
  key_hex: string;
  text: string;
  fingerprint_hex: string;
};
type RejectedRulesCase = { name: string; targeting_rules: TargetingRule[]; pointer: string };
type ContextCase = {
  name: string;
  json: string;
  attributes?: object;
  refused?: string;
  ofrep_attributes?: object;
};

export type CaseFile = {
  title: string;
  optional?: string;
  conditions?: ConditionCase[];
  evaluations?: EvaluationCase[];
  buckets?: BucketCase[];
  hashes?: HashCase[];
  refused_rules?: RejectedRulesCase[];
  contexts?: ContextCase[];
  split_buckets?: SplitBucketCase[];
  allocations?: AllocationCase[];
  fingerprints?: FingerprintCase[];
};

/** Returns the checks of each case of a file, in the order of the file's lists. */
export function checksOf(file: CaseFile): Checked[] {
  return [
    ...(file.conditions ?? []).map((each) => checkEvaluation(asEvaluation(each))),
    ...(file.evaluations ?? []).map(checkEvaluation),
    ...(file.buckets ?? []).map(checkBucket),
    ...(file.hashes ?? []).map(checkHash),
    ...(file.refused_rules ?? []).map(checkRejectedRules),
    ...(file.contexts ?? []).map(checkContext),
    ...(file.split_buckets ?? []).map(checkSplitBucket),
    ...(file.allocations ?? []).map(checkAllocation),
    ...(file.fingerprints ?? []).map(checkFingerprint),
  ];
}

/** Converts a condition case to a flag with one rule, whose only condition refers to the attribute `given`. */
function asEvaluation(condition: ConditionCase): EvaluationCase {
  const { name, given, operator, value, holds, malformed } = condition;
  const rule = { conditions: [{ attribute: "given", operator, value }] };
  return {
    name,
    flag: { key: "flag", enabled: true, rollout_percentage: 100, targeting_rules: [rule] },
    context: given === undefined ? {} : { given },
    expect: holds
      ? { value: true, variation: "on", reason: "targeting_match" }
      : { value: false, variation: "off", reason: "default" },
    ...(malformed ? { malformed } : {}),
  };
}

function checkEvaluation(each: EvaluationCase): Checked {
  const { name, flag, context, expect, malformed, flags, audiences, chunks } = each;
  const { targeting_rules } = flag;
  const environment = {
    ...(flags && { flags }),
    ...(audiences && { audiences }),
    ...(chunks && { chunks }),
  };
  return {
    name,
    checks: [
      {
        request: { op: "evaluate", flag, ...environment, context },
        expected: { result: expect },
      },
      {
        request: { op: "validate_rules", targeting_rules },
        expected: malformed ? { anyPointer: true } : { result: null },
      },
    ],
  };
}

/** Checks a bucket directly, and by the two percentages between which the user enters a rollout. */
function checkBucket({ name, flag_key, user_id, bucket }: BucketCase): Checked {
  const direct: Checked["checks"][number] = {
    request: { op: "bucket", flag_key, user_id },
    expected: { result: bucket },
  };
  // An empty id has a bucket but counts as missing, so it is outside of every rollout.
  if (user_id === "") return { name, checks: [direct] };
  const lastOutside = Math.floor(bucket / 100);
  return {
    name,
    checks: [
      direct,
      checkRollout(flag_key, user_id, lastOutside, false),
      checkRollout(flag_key, user_id, lastOutside + 1, true),
    ],
  };
}

function checkRollout(
  key: string,
  id: string,
  percentage: number,
  value: boolean,
): Checked["checks"][number] {
  return {
    request: {
      op: "evaluate",
      flag: { key, enabled: true, rollout_percentage: percentage, targeting_rules: [] },
      context: { id },
    },
    expected: {
      result: {
        value,
        variation: value ? "on" : "off",
        reason: percentage === 100 ? "static" : "split",
      },
    },
  };
}

/** Checks a bucket of splits directly, and by a split whose variation `bucket` has only this bucket. */
function checkSplitBucket({ name, seed, unit, bucket }: SplitBucketCase): Checked {
  const direct: Checked["checks"][number] = {
    request: { op: "split_bucket", seed, unit },
    expected: { result: bucket },
  };
  if (unit === "") return { name, checks: [direct] };
  const others: Range[] = [
    [0, bucket],
    [bucket + 1, buckets],
  ];
  const split = [
    { variation: "bucket", weight: 0.01, ranges: [[bucket, bucket + 1]] satisfies Range[] },
    { variation: "others", weight: 99.99, ranges: others.filter(([from, to]) => from < to) },
  ];
  const flag = {
    ...{ key: "flag", enabled: true, rollout_percentage: 100, targeting_rules: [] },
    ...{ bucket_seed: seed, value_type: "string", serve: { split }, off_variation: null },
    variations: split.map(({ variation }) => ({ key: variation, value: variation })),
    needs: ["buckets", "values"],
  };
  const result = { value: "bucket", variation: "bucket", reason: "split" };
  return {
    name,
    checks: [
      direct,
      { request: { op: "evaluate", flag, context: { id: unit } }, expected: { result } },
    ],
  };
}

/** Number of buckets of splits. */
const buckets = 10_000;

function checkAllocation({ name, before, weights, split }: AllocationCase): Checked {
  const request = { op: "allocate_ranges" as const, before, weights };
  return { name, checks: [{ request, expected: { result: split } }] };
}

function checkHash({ name, bytes_hex, seed_hex, hash_hex }: HashCase): Checked {
  return {
    name,
    checks: [{ request: { op: "hash", bytes_hex, seed_hex }, expected: { result: hash_hex } }],
  };
}

function checkFingerprint({ name, key_hex, text, fingerprint_hex }: FingerprintCase): Checked {
  const request = { op: "fingerprint" as const, key_hex, text };
  return { name, checks: [{ request, expected: { result: fingerprint_hex } }] };
}

function checkRejectedRules({ name, targeting_rules, pointer }: RejectedRulesCase): Checked {
  return {
    name,
    checks: [{ request: { op: "validate_rules", targeting_rules }, expected: { result: pointer } }],
  };
}

function checkContext(context: ContextCase): Checked {
  const { name, json, attributes, refused, ofrep_attributes } = context;
  const read = (on_invalid: "reject" | "ignore", result: object) => ({
    request: { op: "read_context" as const, json, on_invalid },
    expected: { result },
  });
  return {
    name,
    checks: [
      read("reject", attributes === undefined ? { rejected: refused } : { attributes }),
      ...(ofrep_attributes === undefined ? [] : [read("ignore", { attributes: ofrep_attributes })]),
    ],
  };
}

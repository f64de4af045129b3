import type { Scalar } from "./attributes.ts";
import type { OperatorName } from "./operators/catalogue.ts";

/**
 * The state of a flag in one environment. The names of the members are those of the public API, so that stored and
 * published states can be evaluated without conversion. The schema in `libs/contracts` has the same members.
 */
export type State = {
  enabled: boolean;
  /** From 0 to 100, with at most two decimals. */
  rollout_percentage: number;
  targeting_rules: readonly TargetingRule[];
  /** Name of the attribute that selects a user's bucket. Default: the id. */
  bucket_by?: string | undefined;
  /** Text in place of the flag's key in the hash of buckets. Flags with the same seed select the same users. */
  bucket_seed?: string | undefined;
  /** The served variation or split of a typed flag. Absent for boolean flags. */
  serve?: Serve | undefined;
  /** Key of the variation for all other users of a typed flag. Null: the caller's own default. */
  off_variation?: string | null | undefined;
  /** Other flags that must have these values for the same user. Otherwise the flag is off. */
  requires?: readonly Requirement[] | undefined;
};

/** A flag of the same project, and the values that it may have: on, off, or one of some variations. */
export type Requirement = { flag: string; is: "on" | "off" | readonly string[] };

export type ValueType = "boolean" | "string" | "number" | "object";

/** One variation for all, or a split by bucket. */
export type Serve = { variation: string } | { split: readonly Share[] };

/** The share of a variation. The ranges of all shares together cover every bucket once. */
export type Share = {
  variation: string;
  /** Percentage with at most two decimals. */
  weight: number;
  /** Half-open ranges of buckets in ascending order. */
  ranges: readonly Range[];
};

export type Range = readonly [from: number, to: number];

/** A state resolved for the evaluator: with everything that the evaluation needs beyond the state. */
export type ResolvedState = State & {
  key: string;
  /** Default: boolean. */
  value_type?: ValueType | undefined;
  /** The variations of a typed flag. Evaluations return their indexes. */
  variations?: readonly { key: string }[] | undefined;
};

/** The first rule whose conditions all hold decides. A rule without conditions matches every user. */
export type TargetingRule = {
  id?: string | undefined;
  name?: string | undefined;
  conditions: readonly Condition[];
  /** The value for matching users. Default: true. */
  value?: boolean | undefined;
  /** From 0 to 100, with at most two decimals. Default: the percentage of the flag. */
  rollout_percentage?: number | undefined;
  /** The served variation or split for the users of the rule. Default: that of the state. */
  serve?: Serve | undefined;
};

/** A comparison of an attribute, the membership in an audience, or the value of another flag. */
export type Condition = AttributeCondition | AudienceCondition | Requirement;

export type AttributeCondition = {
  attribute: string;
  operator: OperatorName;
  value: Scalar | readonly Scalar[];
  /** Compares texts exactly. Default: case is ignored. Only for operators of texts and lists. */
  match_case?: boolean | undefined;
};

/** The key of an audience of the project. */
export type AudienceCondition = { audience: string };

/** A named set of users. A user is in it if all conditions of an alternative hold, or if the list has the user. */
export type Audience = {
  /** Alternatives. All conditions of one must hold. */
  match: readonly (readonly AttributeCondition[])[];
  list?: AudienceList | undefined;
};

/**
 * Users by the text of one attribute. Evaluators have only fingerprints of the texts: SipHash-2-4 of the UTF-8 bytes.
 */
export type AudienceList = {
  attribute: string;
  /** Number of entries. */
  count: number;
  /** Key of the fingerprints, 16 bytes in hexadecimal digits. */
  key: string;
  /**
   * SHA-256 of each chunk in hexadecimal digits. Their number is a power of two, 2^b, or 0 for an empty list. A chunk has
   * the fingerprints whose leading b bits are its index: 8 bytes each, big-endian, in ascending order.
   */
  chunks: readonly string[];
};

export function isAudienceCondition(condition: Condition): condition is AudienceCondition {
  return "audience" in condition;
}

export function isRequirement(condition: Condition): condition is Requirement {
  return "flag" in condition;
}

export function isAttributeCondition(condition: Condition): condition is AttributeCondition {
  return !isAudienceCondition(condition) && !isRequirement(condition);
}

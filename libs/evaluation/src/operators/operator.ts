import type { Elements, Subject } from "../subject.ts";
import type { TextSet } from "../text-set.ts";

/** The reason why a condition cannot be evaluated. */
export type Obstacle =
  /** The context has no such attribute. */
  | "attribute_missing"
  /** The attribute is an empty array. */
  | "attribute_empty"
  /** The operator does not support the type of the attribute. */
  | "wrong_type"
  /** The attribute is not a number, date-time or version, but the value of the rule is one. */
  | "not_comparable"
  /** The attribute is longer than the maximum for the rule's regular expression. */
  | "text_too_long"
  /** The stored condition is malformed and never holds. */
  | "invalid_condition";

/** An operator, compiled with the value of a rule. */
export type Comparison = {
  /** Returns whether the comparison holds. Returns false, and never throws, for a value that cannot be compared. */
  readonly holds: (subject: Subject) => boolean;
  /** Returns whether the comparison holds for any element of an array, without scanning all elements each time. */
  readonly holdsForAny: (elements: Elements) => boolean;
  /** True if the operator is negated: the condition holds if the comparison holds for no element. */
  readonly negated: boolean;
  /** Returns the reason why a value cannot be compared, or undefined. */
  readonly obstacle: (subject: Subject) => Obstacle | undefined;
  /** Returns the reason why no element of a non-empty array can be compared, or undefined. */
  readonly obstacleForAll: (elements: Elements) => Obstacle | undefined;
  /** Set if `holds` only compares the folded text with this one. */
  readonly equalTo?: string;
  /** Set if `holds` only looks up the folded text in this set. */
  readonly members?: TextSet;
};

/** The obstacle of operators that can compare every value: none. */
export function noObstacle(): undefined {
  return undefined;
}

/** Returns the obstacle of the first element, for an array without comparable elements. */
export function obstacleOfFirst(
  { subjects: [first] }: Elements,
  obstacle: (subject: Subject) => Obstacle | undefined,
): Obstacle | undefined {
  return first === undefined ? undefined : obstacle(first);
}

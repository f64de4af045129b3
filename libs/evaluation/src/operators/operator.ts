import type { Elements, Subject } from "../subject.ts";
import type { TextSet } from "../text-set.ts";

/** Why a condition does not hold, other than by the comparison. */
export type Obstacle =
  /** Nothing of that name was given. */
  | "attribute_missing"
  /** An array without elements was given. */
  | "attribute_empty"
  /** Something of a type that the operator does not compare. */
  | "wrong_type"
  /** A text that is no number, date-time or version, where the rule has one. */
  | "not_comparable"
  /** A text longer than the rule's regular expression is searched in. */
  | "text_too_long"
  /** The stored condition itself has no meaning; nobody can fulfil it. */
  | "invalid_condition";

/** An operator with the value of a rule, ready to be asked about one value of a user. */
export type Comparison = {
  /** False, never an error, also for what cannot be compared. */
  readonly holds: (subject: Subject) => boolean;
  /** Whether it holds for any element of an array, without going through all of them each time. */
  readonly holdsForAny: (elements: Elements) => boolean;
  /** Whether an array must have no element (instead of any) of which it holds. */
  readonly negated: boolean;
  /** What stands in the way of comparing at all. */
  readonly obstacle: (subject: Subject) => Obstacle | undefined;
  /** What stands in the way of comparing any element of an array that has some. */
  readonly obstacleForAll: (elements: Elements) => Obstacle | undefined;
  /** Set when `holds` only compares the folded text with this one. */
  readonly equalTo?: string;
  /** Set when `holds` only looks for the folded text here. */
  readonly members?: TextSet;
};

/** For operators that can compare with everything. */
export function noObstacle(): undefined {
  return undefined;
}

/** Returns the obstacle of the first element, for an array of which no element can be compared. */
export function obstacleOfFirst(
  { subjects: [first] }: Elements,
  obstacle: (subject: Subject) => Obstacle | undefined,
): Obstacle | undefined {
  return first === undefined ? undefined : obstacle(first);
}

import { type AttributeName, attributeName } from "./attribute-name.ts";
import { compileRequirement } from "./compile-requirement.ts";
import type { CompiledCondition, References } from "./compiled.ts";
import {
  type AttributeCondition,
  type Condition,
  isAudienceCondition,
  isRequirement,
} from "./flag-state.ts";
import { compileComparison } from "./operators/compile-comparison.ts";
import type { Comparison, Obstacle } from "./operators/operator.ts";
import { noReferences } from "./references.ts";
import type { Subject } from "./subject.ts";
import { firstSharedNumber, textNumber } from "./text-number.ts";
import type { TextSet } from "./text-set.ts";

/** A condition with an unknown operator or reference, or with a value that the operator does not support. */
export const neverHolds: CompiledCondition = {
  canHold: false,
  holds: () => false,
  sameAs: undefined,
  obstacle: () => "invalid_condition",
};

/** Compiles a condition of a rule. `references` are `noReferences` for a flag without any. */
export function compileCondition(condition: Condition, references: References): CompiledCondition {
  const { audiences, flags } = references;
  if (typeof condition !== "object" || condition === null) return neverHolds;
  if (isAudienceCondition(condition))
    return audiences.get(condition.audience)?.condition ?? neverHolds;
  if (!isRequirement(condition))
    return references === noReferences
      ? compileComparisonOf(condition)
      : compileComparisonOnce(condition);
  const required = flags.get(condition.flag);
  return required === undefined ? neverHolds : compileRequirement(condition, required).met;
}

/**
 * The compiled conditions of flags with references. Each change of an audience compiles all flags that use it, but their
 * own conditions never change, and compiling patterns for hundreds of flags would block an edge for seconds.
 */
const comparisons = new WeakMap<AttributeCondition, CompiledCondition>();

function compileComparisonOnce(condition: AttributeCondition): CompiledCondition {
  let compiled = comparisons.get(condition);
  if (compiled === undefined) {
    compiled = compileComparisonOf(condition);
    comparisons.set(condition, compiled);
  }
  return compiled;
}

/** Compiles a condition of an attribute. */
export function compileComparisonOf(condition: AttributeCondition): CompiledCondition {
  if (typeof condition !== "object" || condition === null) return neverHolds;
  const { attribute, operator, value } = condition;
  const comparison = compileComparison(operator, value, matchesCase(condition));
  if (comparison === undefined || typeof attribute !== "string") return neverHolds;
  const name = attributeName(attribute);
  return {
    canHold: true,
    holds: compileHolds(name, comparison),
    sameAs: sameAs(name, condition),
    obstacle: (context) => findObstacle(context.find(name.text, name.number), comparison),
  };
}

/** Maximum length of an identity. Longer conditions, with lists of hundreds of items, are rarely shared. */
const maxComparedLength = 500;

/** Malformed values count as false, as they do in `needsOf`. */
const matchesCase = ({ match_case }: AttributeCondition): boolean => match_case === true;

function sameAs({ text }: AttributeName, condition: AttributeCondition): string | undefined {
  const { operator, value } = condition;
  // Each item takes two characters at least.
  if (Array.isArray(value) && value.length > maxComparedLength / 2) return undefined;
  const written = JSON.stringify([text, operator, value, matchesCase(condition)]);
  return written.length <= maxComparedLength ? written : undefined;
}

function compileHolds(name: AttributeName, comparison: Comparison): CompiledCondition["holds"] {
  if (comparison.negated) return holdsForNoValue(name, comparison);
  if (comparison.equalTo !== undefined) return equals(name, comparison.equalTo, comparison);
  if (comparison.members !== undefined) return isIn(name, comparison.members, comparison);
  return holdsForAnyValue(name, comparison);
}

/**
 * `equals` and `in` have their own functions, which call no comparison for a single value (bench `evaluation`, row
 * "rules, 100 flags a user": 1.3 times as long without them).
 */
function equals(
  { text, number }: AttributeName,
  wanted: string,
  { holdsForAny }: Comparison,
): CompiledCondition["holds"] {
  const wantedNumber = textNumber(wanted);
  const isOwn = wantedNumber < firstSharedNumber;
  return (context) => {
    const subject = context.find(text, number);
    if (subject === undefined) return false;
    if (subject.elements !== undefined) return holdsForAny(subject.elements);
    return subject.foldedNumber === wantedNumber && (isOwn || subject.folded === wanted);
  };
}

function isIn(
  { text, number }: AttributeName,
  members: TextSet,
  { holdsForAny }: Comparison,
): CompiledCondition["holds"] {
  return (context) => {
    const subject = context.find(text, number);
    if (subject === undefined) return false;
    return subject.elements === undefined ? members.has(subject) : holdsForAny(subject.elements);
  };
}

function holdsForAnyValue(
  { text, number }: AttributeName,
  { holds, holdsForAny }: Comparison,
): CompiledCondition["holds"] {
  return (context) => {
    const subject = context.find(text, number);
    if (subject === undefined) return false;
    return subject.elements === undefined ? holds(subject) : holdsForAny(subject.elements);
  };
}

/** A negated condition does not hold for a missing attribute or an empty array. */
function holdsForNoValue(
  { text, number }: AttributeName,
  { holds, holdsForAny }: Comparison,
): CompiledCondition["holds"] {
  return (context) => {
    const subject = context.find(text, number);
    if (subject === undefined) return false;
    const { elements } = subject;
    if (elements === undefined) return !holds(subject);
    return !elements.isEmpty && !holdsForAny(elements);
  };
}

function findObstacle(subject: Subject | undefined, comparison: Comparison): Obstacle | undefined {
  if (subject === undefined) return "attribute_missing";
  const { elements } = subject;
  if (elements === undefined) return comparison.obstacle(subject);
  if (elements.isEmpty) return "attribute_empty";
  // If only some elements cannot be compared, the condition failed because of the others.
  return comparison.obstacleForAll(elements);
}

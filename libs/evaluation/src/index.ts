export { type Allocation, allocateRanges, sizeOf } from "./allocate-ranges.ts";
export {
  type Attributes,
  type AttributeValue,
  ignoredAttributes,
  readAttributes,
  type Scalar,
} from "./attributes.ts";
export { bucketOf, buckets, hundredths, splitBucketOf } from "./bucket.ts";
export { compileAll, type EvaluateAll } from "./compile-all.ts";
export { type CompiledFlag, compile } from "./compile-flag.ts";
export { callersDefault } from "./compile-serve.ts";
export { contextOf, createContext, type EvaluationContext, emptyContext } from "./context.ts";
export { type Evaluation, evaluateInSteps } from "./evaluate-in-steps.ts";
export { type Explanation, explain, explainInSteps } from "./explain.ts";
export { expectedPercentage, findRulesProblem } from "./find-rules-problem.ts";
export type {
  Condition,
  Range,
  ResolvedState,
  Serve,
  Share,
  State,
  TargetingRule,
  ValueType,
} from "./flag-state.ts";
export { parseInstant } from "./instant.ts";
export { murmur3 } from "./murmur3.ts";
export { findUnknown, knownNeeds, needsOf } from "./needs.ts";
export { numberPattern } from "./number-text.ts";
export {
  canMatchCase,
  categoryOf,
  expectedValues,
  hasPattern,
  type OperatorCategory,
  type OperatorName,
  operatorCategories,
  operatorNames,
  operators,
} from "./operators/catalogue.ts";
export { codeOfOutcome, type Outcome, outcomes, outcomesByCode } from "./outcome.ts";
export { maxPatternLength } from "./regex/bounds.ts";
export { semverPattern } from "./semver.ts";

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
export { compileAudience } from "./compile-audience.ts";
export { compile } from "./compile-flag.ts";
export { callersDefault } from "./compile-serve.ts";
export type { CompiledAudience, CompiledFlag, Evaluation, References } from "./compiled.ts";
export { contextOf, createContext, type EvaluationContext, emptyContext } from "./context.ts";
export { evaluateInSteps } from "./evaluate-in-steps.ts";
export {
  type Explanation,
  explain,
  explainInSteps,
} from "./explain.ts";
export {
  expectedPercentage,
  findMatchProblem,
  findRulesProblem,
} from "./find-rules-problem.ts";
export { bytesOfHex, compileMembership, fingerprintBytes } from "./fingerprints.ts";
export {
  type AttributeCondition,
  type Audience,
  type AudienceCondition,
  type AudienceList,
  type Condition,
  isAttributeCondition,
  isAudienceCondition,
  isRequirement,
  type Range,
  type Requirement,
  type ResolvedState,
  type Serve,
  type Share,
  type State,
  type TargetingRule,
  type ValueType,
} from "./flag-state.ts";
export { parseInstant } from "./instant.ts";
export type { Pass } from "./last-result.ts";
export { murmur3 } from "./murmur3.ts";
export {
  findUnknown,
  findUnknownCondition,
  knownNeeds,
  type Need,
  needsOf,
  needsOfAudience,
} from "./needs.ts";
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
export {
  type ChangedReferences,
  ReferenceGraph,
  type Referrer,
} from "./reference-graph.ts";
export {
  type FindAudience,
  findMissing,
  noReferences,
  type ReferredKeys,
  referredKeys,
} from "./references.ts";
export { maxPatternLength } from "./regex/bounds.ts";
export { semverPattern } from "./semver.ts";
export { SipHash } from "./sip-hash.ts";

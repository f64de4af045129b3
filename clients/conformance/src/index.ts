export type {
  Allocated,
  Check,
  Condition,
  Context,
  Expected,
  Flag,
  Operation,
  Outcome,
  Range,
  Request,
  Serve,
  Share,
  TargetingRule,
  TypedValue,
  Weight,
} from "./checks.ts";
export {
  type Evaluator,
  type Failure,
  type RunOptions,
  runCase,
  runSuite,
  type SuiteResult,
} from "./run-suite.ts";
export { type ConformanceCase, readSuite, type Suite, type SuiteFile } from "./suite.ts";

export { EvaluationEvents, type EvaluationEventsOptions } from "./evaluation-events.ts";
export { createEvaluationHook, type EvaluationHook } from "./evaluation-hook.ts";

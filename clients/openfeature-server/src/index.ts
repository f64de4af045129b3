export { createEvaluationEvents } from "./evaluation-events.ts";
export { HalyardProvider, type HalyardProviderOptions } from "./provider.ts";

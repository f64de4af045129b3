import {
  createEvaluationHook,
  type EvaluationEventsOptions,
  type EvaluationHook,
} from "@halyard/evaluation/events";

/**
 * Creates a hook that emits evaluations as events of OpenTelemetry: `createEvaluationEvents({ logger:
 * logs.getLogger("shop") })`. Pass it to the provider, which emits the last counts when it is closed.
 */
export function createEvaluationEvents(options: EvaluationEventsOptions): EvaluationHook {
  return createEvaluationHook(options, {
    after(delayMs, callback) {
      const timer = setTimeout(callback, delayMs).unref();
      return () => clearTimeout(timer);
    },
    warn: (message) => console.warn(`Halyard: ${message}`),
  });
}

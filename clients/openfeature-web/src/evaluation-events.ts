import {
  createEvaluationHook,
  type EvaluationEventsOptions,
  type EvaluationHook,
} from "@halyard/evaluation/events";

export type WebEvaluationEventsOptions = EvaluationEventsOptions & {
  /** Ids of the project and the environment: `<project id>/<environment id>`. Halyard sends them to servers only. */
  setId?: string | undefined;
};

/**
 * Creates a hook that emits evaluations as events of OpenTelemetry: `createEvaluationEvents({ logger:
 * logs.getLogger("shop") })`. Pass it to the provider, which emits the last counts when it is closed. They are also
 * emitted when the page is hidden, because it may never be visible again.
 */
export function createEvaluationEvents(options: WebEvaluationEventsOptions): EvaluationHook {
  const hook = createEvaluationHook(options, {
    after(delayMs, callback) {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    },
    warn: (message) => console.warn(`Halyard: ${message}`),
  });
  // Captured, so that the events precede OpenTelemetry's own listener, which sends what it has.
  if (typeof document === "object")
    document.addEventListener(
      "visibilitychange",
      () => {
        if (document.visibilityState === "hidden") hook.flush();
      },
      { capture: true },
    );
  return hook;
}

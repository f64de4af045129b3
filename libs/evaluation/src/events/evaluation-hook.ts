import {
  EvaluationEvents,
  type EvaluationEventsOptions,
  type Surroundings,
} from "./evaluation-events.ts";

/** A hook of OpenFeature. It also counts evaluations that fail before OpenFeature calls the provider. */
export type EvaluationHook = {
  finally(hookContext: HookContext, details: EvaluationDetails): void;
  /** Emits the counts so far. */
  flush(): void;
};

type HookContext = {
  readonly flagKey: string;
  readonly context: { readonly targetingKey?: string | undefined };
};

type EvaluationDetails = {
  readonly value: unknown;
  readonly variant?: string | undefined;
  readonly reason?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly errorMessage?: string | undefined;
  readonly flagMetadata: Readonly<Record<string, unknown>>;
};

/** Creates a hook that counts evaluations. The metadata of flags have OpenFeature's names `version` and `flagSetId`. */
export function createEvaluationHook(
  options: EvaluationEventsOptions & { setId?: string | undefined },
  surroundings: Omit<Surroundings, "setId">,
): EvaluationHook {
  let { setId } = options;
  const events = new EvaluationEvents(options, { ...surroundings, setId: () => setId });
  return {
    finally({ flagKey, context }, details) {
      const { value, variant, reason = "UNKNOWN", errorCode, errorMessage } = details;
      const { version, flagSetId } = details.flagMetadata;
      if (typeof flagSetId === "string") setId ??= flagSetId;
      events.count({
        ...{ key: flagKey, value, variant, errorMessage },
        reason: reason.toLowerCase(),
        errorType: errorCode?.toLowerCase(),
        version: typeof version === "number" ? version : undefined,
        contextId: events.hasContextIds ? context.targetingKey : undefined,
      });
    },
    flush: () => events.flush(),
  };
}

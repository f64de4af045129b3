import type { EvaluationHook } from "@halyard/evaluation/events";
import {
  type Client,
  type ClientOptions,
  type Context,
  createClient,
  type Details,
  type Evaluation,
} from "@halyard/server-sdk";
import {
  ErrorCode,
  type EvaluationContext,
  GeneralError,
  type Hook,
  type JsonValue,
  OpenFeatureEventEmitter,
  type Provider,
  ProviderEvents,
  ProviderFatalError,
  type ResolutionDetails,
} from "@openfeature/server-sdk";
import { detailsOf, errorDetails } from "./details.ts";
import { halyardContext, isTargetingKey } from "./halyard-context.ts";

/** The options of a client, or a client that the application has created and closes itself. */
export type HalyardProviderOptions = (
  | Omit<ClientOptions, "evaluationEvents">
  | { client: Client }
) & {
  /** Emits the evaluations as events of OpenTelemetry: a result of `createEvaluationEvents`. Default: none. */
  evaluationEvents?: EvaluationHook | undefined;
  /** Maximum time that `initialize` waits for flags. Default: 5,000 ms. */
  readyTimeoutMs?: number;
};

const defaultReadyTimeoutMs = 5_000;

/**
 * OpenFeature provider for servers. A Halyard client keeps the flags in memory and evaluates them in the process.
 *
 * The provider is `READY` with current flags, `STALE` 15 seconds after it lost its connection or if it started without
 * one, and `ERROR` without flags or after Halyard rejected the key. In `STALE` and `ERROR` it evaluates the flags that
 * it has.
 */
export class HalyardProvider implements Provider {
  readonly metadata = { name: "halyard" } as const;
  readonly runsOn = "server";
  readonly events = new OpenFeatureEventEmitter();
  readonly hooks: Hook[];
  readonly #options: HalyardProviderOptions;
  /** Undefined before `initialize` and after `onClose`. */
  #client: Client | undefined;
  #unsubscribe: (() => void)[] = [];

  constructor(options: HalyardProviderOptions) {
    // Plain JavaScript can pass nothing. The client then reports what is missing.
    this.#options = options ?? {};
    const { evaluationEvents } = this.#options;
    this.hooks = evaluationEvents ? [evaluationEvents] : [];
  }

  /**
   * Connects, and waits until there are flags from Halyard. After `readyTimeoutMs`, flags from the cache file or the
   * bootstrap object are enough.
   *
   * @throws ProviderFatalError without any flags, if the options are invalid or Halyard rejected the key.
   * @throws GeneralError without any flags yet. The client continues to connect, and the provider becomes `READY` when
   * it has flags.
   */
  async initialize(): Promise<void> {
    void this.onClose();
    const {
      readyTimeoutMs = defaultReadyTimeoutMs,
      evaluationEvents: _,
      ...options
    } = this.#options;
    const client = "client" in options ? options.client : createClient(options);
    this.#client = client;
    await client.ready({ timeoutMs: readyTimeoutMs });
    if (client !== this.#client) throw new GeneralError("The provider was closed.");
    this.#follow(client);
    const { source, current } = client.status;
    if (source === "none") {
      if (hasStopped(client)) throw new ProviderFatalError(describeStop(client));
      throw new GeneralError(
        `No flags after ${readyTimeoutMs} ms. The client continues to connect.`,
      );
    }
    // OpenFeature sets the status READY after this function has returned.
    if (!current) setTimeout(() => this.#reportStale(client));
  }

  /** Closes the client, unless it is the application's. The provider can be initialized again. */
  async onClose(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#options.evaluationEvents?.flush();
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    if (!("client" in this.#options)) await client?.close();
  }

  async resolveBooleanEvaluation(
    flagKey: string,
    defaultValue: boolean,
    context: EvaluationContext,
  ): Promise<ResolutionDetails<boolean>> {
    return this.#resolve(flagKey, { defaultValue, context }, (client, user) =>
      client.evaluate(flagKey, user, defaultValue),
    );
  }

  async resolveStringEvaluation(
    flagKey: string,
    defaultValue: string,
    context: EvaluationContext,
  ): Promise<ResolutionDetails<string>> {
    return this.#resolve(flagKey, { defaultValue, context }, (client, user) =>
      client.getStringDetails(flagKey, user, defaultValue),
    );
  }

  async resolveNumberEvaluation(
    flagKey: string,
    defaultValue: number,
    context: EvaluationContext,
  ): Promise<ResolutionDetails<number>> {
    return this.#resolve(flagKey, { defaultValue, context }, (client, user) =>
      client.getNumberDetails(flagKey, user, defaultValue),
    );
  }

  async resolveObjectEvaluation<T extends JsonValue>(
    flagKey: string,
    defaultValue: T,
    context: EvaluationContext,
  ): Promise<ResolutionDetails<T>> {
    // OpenFeature's type includes texts and numbers. The client returns any fallback as it is.
    return this.#resolve(flagKey, { defaultValue, context }, (client, user) =>
      client.getObjectDetails(flagKey, user, defaultValue as object | null),
    );
  }

  #resolve<T>(
    flagKey: string,
    { defaultValue, context }: { defaultValue: T; context: EvaluationContext },
    evaluate: (client: Client, user: Context) => Evaluation | Details<unknown>,
  ): ResolutionDetails<T> {
    const client = this.#client;
    if (client === undefined) return errorDetails(defaultValue, ErrorCode.PROVIDER_NOT_READY);
    if (!isTargetingKey(context.targetingKey))
      return errorDetails(defaultValue, ErrorCode.INVALID_CONTEXT);
    const evaluation = evaluate(client, halyardContext(context));
    const { source } = client.status;
    const version = client.versionOf(flagKey);
    return detailsOf(evaluation, { source, version, flagSetId: client.flagSetId });
  }

  #reportStale(client: Client): void {
    if (client !== this.#client || client.status.current) return;
    this.events.emit(ProviderEvents.Stale, { message: "Halyard is unreachable." });
  }

  #follow(client: Client): void {
    const { events } = this;
    this.#unsubscribe = [
      client.on("change", ({ keys }) =>
        events.emit(ProviderEvents.ConfigurationChanged, { flagsChanged: [...keys] }),
      ),
      client.on("current", () => events.emit(ProviderEvents.Ready)),
      client.on("stale", () => this.#reportStale(client)),
      client.on("error", ({ fatal, message }) => {
        if (!fatal) return;
        // With flags in memory it is not fatal for OpenFeature, which would stop evaluating them.
        const errorCode =
          client.status.source === "none" ? ErrorCode.PROVIDER_FATAL : ErrorCode.GENERAL;
        events.emit(ProviderEvents.Error, { message, errorCode });
      }),
    ];
  }
}

/** Returns whether the client will never connect again. */
function hasStopped({ status }: Client): boolean {
  return status.connection === "stopped" || status.connection === "invalid_options";
}

function describeStop({ status }: Client): string {
  return status.connection === "stopped"
    ? "Halyard rejected the key."
    : "The options of the client are invalid; the log has the details.";
}

import { type Client, type ClientOptions, createClient, type Details } from "@halyard/browser-sdk";
import type { EvaluationHook } from "@halyard/evaluation/events";
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
} from "@openfeature/web-sdk";
import { detailsOf, errorDetails } from "./details.ts";
import { halyardContext } from "./halyard-context.ts";

/**
 * The options of a client, or a client that the application has created and closes itself. The user is OpenFeature's
 * context. Only while that is empty, a client keeps the context that it was created with.
 */
export type HalyardProviderOptions = (Omit<ClientOptions, "context"> | { client: Client }) & {
  /** Emits the evaluations as events of OpenTelemetry: a result of `createEvaluationEvents`. Default: none. */
  evaluationEvents?: EvaluationHook | undefined;
  /** Maximum time that `initialize` and a change of the context wait for values. Default: 5,000 ms. */
  readyTimeoutMs?: number;
};

const defaultReadyTimeoutMs = 5_000;

/** A fallback of each type, which tells the client the type. */
const exampleOf = { boolean: false, string: "", number: 0, object: {} };

/**
 * OpenFeature provider for browsers. A Halyard client keeps the values of one user, and receives changes.
 *
 * The provider is `READY` with current values, `STALE` with others, and `ERROR` without values or after Halyard
 * rejected the key. In `STALE` and `ERROR` it still returns the values that it has.
 */
export class HalyardProvider implements Provider {
  readonly metadata = { name: "halyard" } as const;
  readonly runsOn = "client";
  /** The values are those of one context, and each domain can have another. */
  readonly domainScoped = true;
  readonly events = new OpenFeatureEventEmitter();
  readonly hooks: Hook[];
  readonly #options: HalyardProviderOptions;
  readonly #wait: { timeoutMs: number };
  /** Undefined before `initialize` and after `onClose`. */
  #client: Client | undefined;
  #unsubscribe: (() => void)[] = [];
  /** Number of context changes in progress. OpenFeature reports their effects, so the client's events are not emitted. */
  #contextChanges = 0;

  constructor(options: HalyardProviderOptions) {
    // Plain JavaScript can pass nothing. The client then reports what is missing.
    this.#options = options ?? {};
    const { evaluationEvents } = this.#options;
    this.hooks = evaluationEvents ? [evaluationEvents] : [];
    this.#wait = { timeoutMs: this.#options.readyTimeoutMs ?? defaultReadyTimeoutMs };
  }

  /**
   * Connects, and waits until there are values from Halyard. After `readyTimeoutMs`, stored or bootstrapped values are
   * enough.
   *
   * @throws ProviderFatalError without any values, if the options are invalid or Halyard rejected the key.
   * @throws GeneralError without any values yet. The client continues to connect, and the provider becomes `READY` when
   * it has values.
   */
  async initialize(context: EvaluationContext = {}): Promise<void> {
    void this.onClose();
    const client = this.#open(context);
    this.#client = client;
    await client.ready(this.#wait);
    if (client !== this.#client) throw new GeneralError("The provider was closed.");
    this.#follow(client);
    if (client.status.source === "none" && client.status.connection === "stopped")
      throw new ProviderFatalError("The options are invalid, or Halyard rejected the client key.");
    this.#requireValues(client);
  }

  /** Switches to another user. Meanwhile OpenFeature reports `RECONCILING`, and the earlier values remain. */
  async onContextChange(_: EvaluationContext, context: EvaluationContext): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    this.#contextChanges += 1;
    await client.setContext(halyardContext(context), this.#wait);
    this.#contextChanges -= 1;
    if (client === this.#client) this.#requireValues(client);
  }

  /** Closes the client, unless it is the application's. The provider can be initialized again. */
  async onClose(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#options.evaluationEvents?.flush();
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    if (!("client" in this.#options)) client?.close();
  }

  resolveBooleanEvaluation = (flagKey: string, defaultValue: boolean) =>
    this.#resolve(flagKey, defaultValue, "boolean");

  resolveStringEvaluation = (flagKey: string, defaultValue: string) =>
    this.#resolve(flagKey, defaultValue, "string");

  resolveNumberEvaluation = (flagKey: string, defaultValue: number) =>
    this.#resolve(flagKey, defaultValue, "number");

  /** Returns a frozen object. Its members are not compared with those of the default. */
  resolveObjectEvaluation = <T extends JsonValue>(flagKey: string, defaultValue: T) =>
    this.#resolve(flagKey, defaultValue, "object");

  #resolve<T>(
    flagKey: string,
    defaultValue: T,
    type: keyof typeof exampleOf,
  ): ResolutionDetails<T> {
    const client = this.#client;
    if (client === undefined || client.status.source === "none")
      return errorDetails(defaultValue, ErrorCode.PROVIDER_NOT_READY);
    // Not with the default, whose type is not checked: the default of an object can be any JSON value.
    const details = client.details(flagKey, exampleOf[type]);
    return detailsOf(details as Details<T>, { defaultValue, status: client.status });
  }

  #open(context: EvaluationContext): Client {
    const isEmpty = Object.keys(context).length === 0;
    if (!("client" in this.#options)) {
      const { readyTimeoutMs: _, evaluationEvents: __, ...options } = this.#options;
      return createClient({ ...options, context: halyardContext(context) });
    }
    const { client } = this.#options;
    if (!isEmpty) void client.setContext(halyardContext(context), this.#wait);
    return client;
  }

  /** Throws without values. With values that are not current, the provider becomes `STALE`. */
  #requireValues(client: Client): void {
    const { source, current } = client.status;
    if (source === "none")
      throw new GeneralError(
        `No values after ${this.#wait.timeoutMs} ms. The client continues to connect.`,
      );
    if (current) return;
    // OpenFeature sets the status READY after this function has returned.
    setTimeout(() => {
      if (client === this.#client && !client.status.current) this.#becomeStale();
    });
  }

  #becomeStale(): void {
    this.events.emit(ProviderEvents.Stale, { message: "The values may be out of date." });
  }

  #follow(client: Client): void {
    const { events } = this;
    this.#unsubscribe = [
      client.on("change", ({ keys }) => {
        if (this.#contextChanges === 0)
          events.emit(ProviderEvents.ConfigurationChanged, { flagsChanged: [...keys] });
      }),
      client.on("current", () => {
        if (this.#contextChanges === 0) events.emit(ProviderEvents.Ready);
      }),
      client.on("stale", () => {
        if (this.#contextChanges === 0) this.#becomeStale();
      }),
      client.on("error", ({ isFatal, message }) => {
        if (!isFatal) return;
        // With values in memory it is not fatal for OpenFeature, which would stop returning them.
        const errorCode =
          client.status.source === "none" ? ErrorCode.PROVIDER_FATAL : ErrorCode.GENERAL;
        events.emit(ProviderEvents.Error, { message, errorCode });
      }),
    ];
  }
}

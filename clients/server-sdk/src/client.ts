import type {
  Explanation as EngineExplanation,
  Scalar,
  Serve,
  ValueType,
} from "@halyard/evaluation";
import type { FlagTypes, Frozen, JsonObject, KeysOf } from "./flag-types.ts";
import type { HalyardError } from "./halyard-error.ts";

/**
 * The attributes of a user, as in the HTTP API. `id` is the user's id; `user_id` is an alias of it.
 * Attributes of other types, such as objects, count as missing. A context never leaves the process.
 */
export type Context = {
  readonly id?: string | number | null | undefined;
  readonly [attribute: string]: Scalar | readonly Scalar[] | null | undefined;
};

/** The origin of the flags in memory. A source is replaced by one further to the left, never the other way round. */
export type Source = "stream" | "poll" | "cache" | "bootstrap" | "none";

/**
 * The reason of a result. The first six come from the evaluation of a flag. With the others, the value is the caller's
 * fallback and there is no variation.
 */
export type EvaluationReason =
  | "static"
  | "split"
  | "targeting_match"
  | "default"
  | "disabled"
  | "prerequisite_failed"
  /** The environment has no flag with this key, or the flag refers to something that is unknown. */
  | "flag_not_found"
  /** The client has no flags yet, from any source. */
  | "not_ready"
  /** The context is not an object, or reading it failed. */
  | "invalid_context"
  /** The client was created without a usable base address or server key. */
  | "invalid_options"
  /** The flag has values of another type, or the number is not an integer. */
  | "type_mismatch";

export type Evaluation = {
  readonly value: boolean;
  readonly variation: "on" | "off" | undefined;
  readonly reason: EvaluationReason;
  /** Key of the first required flag that has another value. Set with the reason `prerequisite_failed`. */
  readonly prerequisite?: string;
  /** The reason in capitals, if the flag could not be evaluated. */
  readonly error?: EvaluationError;
};

export type EvaluationError =
  | "FLAG_NOT_FOUND"
  | "NOT_READY"
  | "INVALID_CONTEXT"
  | "INVALID_OPTIONS"
  | "TYPE_MISMATCH";

/** The value of a typed flag with its origin. */
export type Details<T> = {
  readonly value: T;
  /** Key of the variation. Null if the value is the fallback: because the flag serves it, or after an error. */
  readonly variation: string | null;
  readonly reason: EvaluationReason;
  /** Key of the first required flag that has another value. Set with the reason `prerequisite_failed`. */
  readonly prerequisite?: string;
  /** The reason in capitals, if the flag could not be evaluated. */
  readonly error?: EvaluationError;
};

/** The value of a flag of any type. Both members are null if the flag serves the caller's default. */
export type Evaluated = {
  readonly value: boolean | string | number | JsonObject | null;
  /** Key of the variation; `on` or `off` for a boolean flag. */
  readonly variation: string | null;
};

/** An outcome with a trace of the rules. It contains attribute names but no value of the context. */
export type Explanation = Omit<EngineExplanation, "served"> & {
  /** Set for a typed flag. */
  readonly served?: {
    /** Key of the variation that the user gets. Null: the caller's fallback. */
    readonly variation: string | null;
    /** The variation or split for users whom the rules include. Undefined for all others. */
    readonly serve: Serve | undefined;
    /** Bucket of the user in a split. Null for a user without the attribute that selects it. */
    readonly bucket: number | null | undefined;
  };
};

export type ConnectionState =
  /** The first attempt, or a pause before the next one. */
  | "connecting"
  | "streaming"
  /** The stream is not available. Flags are requested at intervals. */
  | "polling"
  /** The service rejected the key. The client sends no more requests. */
  | "stopped"
  | "closed"
  | "invalid_options";

export type Status = {
  readonly source: Source;
  /** True if a stream is open or the last poll succeeded: changes arrive. */
  readonly current: boolean;
  /** Time at which the service last sent or confirmed these flags. For a cache file, the time of the write. */
  readonly lastUpdateAt: Date | undefined;
  readonly connection: ConnectionState;
};

export type ClientEvents = {
  /** Settings of these flags changed, or an audience or flag that they refer to, or the flags were added or removed. */
  change: { readonly keys: readonly string[]; readonly source: Source };
  /** Flags are current: for the first time, or again after `stale`. */
  current: { readonly source: Source };
  /** Flags have not been current for 15 seconds. The client continues with the flags that it has. */
  stale: { readonly lastUpdateAt: Date | undefined };
  error: HalyardError;
};

/**
 * Methods for typed flags. Each returns the value of the flag for a user. The fallback is the value if the flag serves no
 * variation, does not exist or has another type. The forms with `Details` add the variation and the reason.
 */
export type TypedMethods<Flags extends string | FlagTypes = string> = {
  getString(key: KeysOf<Flags, "string">, context: OptionalContext, fallback: string): string;
  getStringDetails(
    key: KeysOf<Flags, "string">,
    context: OptionalContext,
    fallback: string,
  ): Details<string>;
  getNumber(key: KeysOf<Flags, "number">, context: OptionalContext, fallback: number): number;
  getNumberDetails(
    key: KeysOf<Flags, "number">,
    context: OptionalContext,
    fallback: number,
  ): Details<number>;
  /** Like `getNumber`. A value with a fraction or beyond ±(2^53−1) is a type mismatch. */
  getInteger(key: KeysOf<Flags, "number">, context: OptionalContext, fallback: number): number;
  getIntegerDetails(
    key: KeysOf<Flags, "number">,
    context: OptionalContext,
    fallback: number,
  ): Details<number>;
  /** Returns a JSON object that all evaluations share. It is frozen at all levels. */
  getObject<T extends object | null>(
    key: KeysOf<Flags, "object">,
    context: OptionalContext,
    fallback: T,
  ): Frozen<T>;
  getObjectDetails<T extends object | null>(
    key: KeysOf<Flags, "object">,
    context: OptionalContext,
    fallback: T,
  ): Details<Frozen<T>>;
};

type OptionalContext = Context | null | undefined;

/**
 * Flags in memory, kept current in the background. No method throws, and no promise rejects. Methods need no `this`, so
 * they can be passed around. `Flags` restricts the keys: it is a union of keys, or the types that `defineFlags` declares.
 */
export type Client<Flags extends string | FlagTypes = string> = TypedMethods<Flags> & {
  /**
   * Resolves with true when the flags come from the service, by stream or poll, with the lists of their audiences. A list
   * that does not arrive delays this for at most 30 s. Resolves with false after the time-out (default 5,000 ms), or
   * immediately when the client is closed or cannot connect: invalid options or a rejected key. The client then answers
   * from the cache file, the bootstrap object or fallbacks.
   */
  ready(options?: { timeoutMs?: number }): Promise<boolean>;
  /** Returns the value of a boolean flag for a user, or the fallback (default false) if there is no value. */
  isEnabled(key: KeysOf<Flags, "boolean">, context?: Context | null, fallback?: boolean): boolean;
  /** Like `isEnabled`, with the variation and the reason of the value. */
  evaluate(key: KeysOf<Flags, "boolean">, context?: Context | null, fallback?: boolean): Evaluation;
  /** Returns the values of all boolean flags for a user. Counts as one evaluation of each of them. */
  allFlags(context?: Context | null): Record<KeysOf<Flags, "boolean">, boolean>;
  /**
   * Returns the values and variations of all flags for a user, in the form that the SDKs for browsers take as
   * `bootstrap`. Counts as one evaluation of each of them.
   */
  allValues(context?: Context | null): Record<KeysOf<Flags, ValueType>, Evaluated>;
  /**
   * Returns the outcome of a flag with a trace of its rules, without counting an evaluation. Undefined if the flag does
   * not exist or the context is invalid. The `value` of a typed flag is true if its rules include the user.
   */
  explain(key: KeysOf<Flags, ValueType>, context?: Context | null): Explanation | undefined;
  /** Returns the version of a flag in memory: of its last change in this environment. Undefined without such a flag. */
  versionOf(key: KeysOf<Flags, ValueType>): number | undefined;
  /** Adds a listener and returns a function that removes it. Exceptions of listeners are logged. */
  on<E extends keyof ClientEvents>(event: E, listener: Listener<E>): () => void;
  off<E extends keyof ClientEvents>(event: E, listener: Listener<E>): void;
  readonly status: Status;
  /** The ids of the project and the environment: `<project id>/<environment id>`. Undefined before the first flags. */
  readonly flagSetId: string | undefined;
  /**
   * Disconnects and sends the remaining usage counts, within two seconds. The client continues to answer from memory,
   * but its flags no longer change.
   */
  close(): Promise<void>;
};

export type Listener<E extends keyof ClientEvents> = (payload: ClientEvents[E]) => void;

/** The part of a client that evaluates the flags in memory. */
export type Evaluator = TypedMethods &
  Pick<Client, "isEnabled" | "evaluate" | "allFlags" | "allValues" | "explain" | "versionOf">;

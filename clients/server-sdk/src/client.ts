import type { Explanation, Scalar } from "@halyard/evaluation";
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
 * The reason of a result. The first five come from the evaluation of a flag. With the others, the value is the caller's
 * fallback and there is no variation.
 */
export type EvaluationReason =
  | "static"
  | "split"
  | "targeting_match"
  | "default"
  | "disabled"
  /** The environment has no flag with this key. */
  | "flag_not_found"
  /** The client has no flags yet, from any source. */
  | "not_ready"
  /** The context is not an object, or reading it failed. */
  | "invalid_context"
  /** The client was created without a usable base address or server key. */
  | "invalid_options";

export type Evaluation = {
  readonly value: boolean;
  readonly variation: "on" | "off" | undefined;
  readonly reason: EvaluationReason;
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
  /** Settings of these flags changed, or the flags were added or removed. */
  change: { readonly keys: readonly string[]; readonly source: Source };
  /** Flags are current: for the first time, or again after `stale`. */
  current: { readonly source: Source };
  /** Flags have not been current for 15 seconds. The client continues with the flags that it has. */
  stale: { readonly lastUpdateAt: Date | undefined };
  error: HalyardError;
};

/**
 * Flags in memory, kept current in the background. No method throws, and no promise rejects. Methods need no `this`, so
 * they can be passed around.
 */
export type Client<FlagKeys extends string = string> = {
  /**
   * Resolves with true when the flags come from the service, by stream or poll. Resolves with false after the time-out
   * (default 5,000 ms), or immediately when the client is closed or cannot connect: invalid options or a rejected key. The
   * client then answers from the cache file, the bootstrap object or fallbacks.
   */
  ready(options?: { timeoutMs?: number }): Promise<boolean>;
  /** Returns the value of a flag for a user, or the fallback (default false) if there is no value. */
  isEnabled(key: FlagKeys, context?: Context | null, fallback?: boolean): boolean;
  /** Like `isEnabled`, with the variation and the reason of the value. */
  evaluate(key: FlagKeys, context?: Context | null, fallback?: boolean): Evaluation;
  /** Returns the values of all flags for a user. Counts as one evaluation of each flag. */
  allFlags(context?: Context | null): Record<FlagKeys, boolean>;
  /**
   * Returns the outcome of a flag with a trace of its rules, without counting an evaluation. Undefined if the flag does
   * not exist or the context is invalid. A trace contains attribute names but no value of the context.
   */
  explain(key: FlagKeys, context?: Context | null): Explanation | undefined;
  /** Adds a listener and returns a function that removes it. Exceptions of listeners are logged. */
  on<E extends keyof ClientEvents>(event: E, listener: Listener<E>): () => void;
  off<E extends keyof ClientEvents>(event: E, listener: Listener<E>): void;
  readonly status: Status;
  /**
   * Disconnects and sends the remaining usage counts, within two seconds. The client continues to answer from memory,
   * but its flags no longer change.
   */
  close(): Promise<void>;
};

export type Listener<E extends keyof ClientEvents> = (payload: ClientEvents[E]) => void;

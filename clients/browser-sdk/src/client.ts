import { type Clock, systemClock } from "./clock.ts";
import type { Context } from "./context.ts";
import type { Declaration, KeyOf } from "./declared-flags.ts";
import { createListeners } from "./listeners.ts";
import { type ClientOptions, readOptions } from "./options.ts";
import { browserPage, type Page } from "./page.ts";
import { HalyardError } from "./problem.ts";
import { createReaders, type Readers } from "./readers.ts";
import { createSession } from "./session.ts";
import type { Status } from "./status.ts";
import { createStoredValues } from "./stored-values.ts";
import type { Evaluated } from "./typed-values.ts";
import { createUserValues, type Source } from "./user-values.ts";

/** The values of all flags for one user. No method throws or rejects. */
export type Client<Flags extends Declaration = string> = Readers<Flags> & {
  /**
   * Resolves with true when the values are current. Resolves with false after the time (default: 5 s), or immediately
   * if the client has stopped. The client then answers with stored or bootstrapped values, or with the fallbacks.
   */
  ready(options?: WaitOptions): Promise<boolean>;
  /** Returns the values of all boolean flags. The object is frozen, and the same one until a value changes. */
  allFlags(): BooleanFlags<Flags>;
  /** Returns all values with their variations. The object is frozen, and the same one until a value changes. */
  allValues(): AllValues<Flags>;
  /**
   * Switches to another user. All values change together: immediately if values of that user are stored, otherwise
   * when they arrive. Until then the earlier values apply, for at most `timeoutMs` (default: 5 s); then the fallbacks.
   * Resolves with true when the new values are current; with false after the time, after a fatal error, without a
   * connection, and if another call has followed.
   */
  setContext(context?: Context, options?: WaitOptions): Promise<boolean>;
  /** Adds a listener. Returns a function that removes it. */
  on<Name extends keyof ClientEvents<Flags>>(
    name: Name,
    listener: ClientEvents<Flags>[Name],
  ): () => void;
  off<Name extends keyof ClientEvents<Flags>>(
    name: Name,
    listener: ClientEvents<Flags>[Name],
  ): void;
  /** The present state. */
  readonly status: Status;
  /** The initial values. A server and a page that render from them agree. */
  readonly bootstrap: AllValues<Flags>;
  /** Connects after `autoConnect: false`, `close` or a fatal error. Does nothing while connected. */
  connect(): void;
  /** Ends the connection. The client keeps its values. */
  close(): void;
};

export type BooleanFlags<Flags extends Declaration = string> = Readonly<
  Partial<Record<KeyOf<Flags, "boolean">, boolean>>
>;

export type AllValues<Flags extends Declaration = string> = Readonly<
  Partial<Record<KeyOf<Flags>, Evaluated>>
>;

export type WaitOptions = { timeoutMs?: number | undefined };

export type ClientEvents<Flags extends Declaration = string> = {
  /** Values or their variations have changed. Flags that were added or deleted count as changed. */
  change: (change: { keys: KeyOf<Flags>[]; source: Source }) => void;
  /** The values are current, for the first time or again. */
  current: () => void;
  /** The values may be out of date, because Halyard cannot be reached or the page is hidden. */
  stale: () => void;
  error: (error: HalyardError) => void;
};

const defaultTimeoutMs = 5_000;

/** Plain JavaScript can pass null. */
function timeoutOf(options: WaitOptions | null | undefined): number {
  return options?.timeoutMs ?? defaultTimeoutMs;
}

/**
 * Creates a client and connects it. Invalid options are logged. The client then answers from `bootstrap`, and with
 * fallbacks.
 */
export function createClient<Flags extends Declaration = string>(
  options: ClientOptions<Flags>,
): Client<Flags> {
  return createClientIn({ page: browserPage(), clock: systemClock }, options);
}

/** Creates a client in surroundings that tests control. */
export function createClientIn<Flags extends Declaration = string>(
  surroundings: { page: Page | undefined; clock: Clock },
  given: ClientOptions<Flags>,
): Client<Flags> {
  const options = readOptions(given);
  const { log } = options;
  const listeners = createListeners<ClientEvents>(log);
  const report = (problem: HalyardError) => {
    log(problem);
    listeners.emit("error", problem);
  };
  const stored = createStoredValues(options.storage, (error) =>
    report(new HalyardError("storage", `The values cannot be stored: ${error}`)),
  );
  const values = createUserValues(stored, (change) => listeners.emit("change", change));
  const session = createSession({
    ...surroundings,
    ...{ options, values, report },
    onFreshness: (event) => listeners.emit(event),
  });
  if (options.problem !== undefined) report(new HalyardError("options", options.problem));
  if (options.autoConnect) session.connect();

  const client: Client = {
    ready: (wait) => session.wait(timeoutOf(wait)),
    ...createReaders(
      () => values.all,
      (problem) => {
        // Without current values, every flag can be missing.
        if (problem.kind !== "unknown_flag" || session.status().current) log(problem);
      },
    ),
    allFlags: () => values.booleans,
    allValues: () => values.all,
    setContext: (context, wait) => session.switchTo(context, timeoutOf(wait)),
    on: listeners.on,
    off: listeners.off,
    get status() {
      return session.status();
    },
    bootstrap: options.bootstrap ?? {},
    connect: session.connect,
    close: session.close,
  };
  return client as Client<Flags>;
}

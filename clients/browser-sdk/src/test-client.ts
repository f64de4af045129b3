import type { Client, ClientEvents } from "./client.ts";
import type { Declaration, KeyOf } from "./declared-flags.ts";
import { createListeners } from "./listeners.ts";
import type { InitialValueOf, InitialValues } from "./options.ts";
import { createProblemLog } from "./problem.ts";
import { createReaders } from "./readers.ts";
import {
  booleansOf,
  changedKeys,
  readInitialValues,
  reuseEqual,
  type Values,
} from "./typed-values.ts";

/** A client whose values a test sets. It connects to nothing, and has the same values for every user. */
export type TestClient<Flags extends Declaration = string> = Client<Flags> & {
  /** Sets a value. Listeners are called before this returns. */
  set<Key extends KeyOf<Flags>>(key: Key, value: InitialValueOf<Flags, Key>): void;
  /** Restores the initial values. */
  reset(): void;
};

/**
 * Creates a client for tests of an application: `createTestClient({ "new-checkout": true, "checkout-color": "blue" })`.
 * An object has its variation beside it: `{ limits: { value: { seats: 5 }, variation: "small" } }`.
 */
export function createTestClient<Flags extends Declaration = string>(
  initial?: InitialValues<Flags>,
): TestClient<Flags> {
  const log = createProblemLog(console);
  const listeners = createListeners<ClientEvents>(log);
  const first = readInitialValues(initial, log) ?? Object.freeze({});
  let values = first;
  let booleans = booleansOf(first);

  function replace(given: Values): void {
    const next = reuseEqual(values, given);
    const keys = changedKeys(values, next);
    if (keys.length === 0) return;
    values = next;
    booleans = booleansOf(next);
    listeners.emit("change", { keys, source: "stream" });
  }

  const client: TestClient = {
    ready: () => Promise.resolve(true),
    ...createReaders(
      () => values,
      (problem) => {
        // A test sets only the flags that it is about.
        if (problem.kind !== "unknown_flag") log(problem);
      },
    ),
    allFlags: () => booleans,
    allValues: () => values,
    setContext: () => Promise.resolve(true),
    on: listeners.on,
    off: listeners.off,
    status: { source: "stream", current: true, connection: "streaming", lastUpdateAt: 0 },
    bootstrap: first,
    connect() {},
    close() {},
    set: (key, value) => replace({ ...values, ...readInitialValues({ [key]: value }, log) }),
    reset: () => replace(first),
  };
  return client as unknown as TestClient<Flags>;
}

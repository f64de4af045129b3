import type { Client, ClientEvents } from "./client.ts";
import { changedKeys, type Flags } from "./flags.ts";
import { createListeners } from "./listeners.ts";

/** A client whose values a test sets. It connects to nothing, and has the same values for every user. */
export type TestClient<FlagKeys extends string = string> = Client<FlagKeys> & {
  /** Sets a value. Listeners are called before this returns. */
  set(key: FlagKeys, value: boolean): void;
  /** Restores the initial values. */
  reset(): void;
};

/** Creates a client for tests of an application: `createTestClient({ "new-checkout": true })`. */
export function createTestClient<FlagKeys extends string = string>(
  initial?: Readonly<Partial<Record<FlagKeys, boolean>>>,
): TestClient<FlagKeys> {
  const listeners = createListeners<ClientEvents>((problem) => console.error(problem.message));
  const first = Object.freeze({ ...initial }) as Flags;
  let flags = first;

  function replace(next: Flags): void {
    const keys = changedKeys(flags, next);
    if (keys.length === 0) return;
    flags = Object.freeze(next);
    listeners.emit("change", { keys, source: "stream" });
  }

  const client: TestClient = {
    ready: () => Promise.resolve(true),
    isEnabled: (key, fallback = false) =>
      Object.hasOwn(flags, key) ? (flags[key] as boolean) : fallback,
    allFlags: () => flags,
    setContext: () => Promise.resolve(true),
    on: listeners.on,
    off: listeners.off,
    status: { source: "stream", current: true, connection: "streaming", lastUpdateAt: 0 },
    bootstrap: first,
    connect() {},
    close() {},
    set: (key, value) => replace({ ...flags, [key]: value }),
    reset: () => replace(first),
  };
  return client as TestClient<FlagKeys>;
}

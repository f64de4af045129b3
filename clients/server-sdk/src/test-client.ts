import { type Outcome, outcomes } from "@halyard/evaluation";
import type { Client, Evaluation, Status } from "./client.ts";
import { createListeners } from "./listeners.ts";

/** A client for the tests of an application. It has no connection, and the values that a test gives it. */
export type TestClient<FlagKeys extends string = string> = Client<FlagKeys> & {
  /** Sets the value of a flag for every user, and emits `change` if it differs. */
  set(key: FlagKeys, value: boolean): void;
  /** Restores the values of the creation. */
  reset(): void;
};

/** Creates a client that is ready and has these values: `createTestClient({ "new-checkout": true })`. */
export function createTestClient<FlagKeys extends string = string>(
  values: Partial<Record<FlagKeys, boolean>> = {},
): TestClient<FlagKeys> {
  const initial = new Map(Object.entries<boolean | undefined>(values));
  let current = new Map(initial);
  const lastUpdateAt = new Date();
  const listeners = createListeners((event, error) =>
    console.warn(`Halyard: a listener of "${event}" threw an exception.`, error),
  );
  let connection: Status["connection"] = "streaming";

  function outcomeOf(key: string): Outcome | undefined {
    const value = current.get(key);
    if (value === undefined) return undefined;
    return value === true ? outcomes.static : outcomes.disabled;
  }

  function replace(next: Map<string, boolean | undefined>): void {
    const previous = current;
    current = next;
    const keys = [...new Set([...previous.keys(), ...next.keys()])].filter(
      (key) => previous.get(key) !== next.get(key),
    );
    if (keys.length > 0) listeners.emit("change", { keys, source: "stream" });
  }

  return {
    ready: async () => connection !== "closed",
    isEnabled: (key, _context, fallback) => outcomeOf(key)?.value ?? fallback === true,
    evaluate(key, _context, fallback): Evaluation {
      const missing = { value: fallback === true, variation: undefined };
      return outcomeOf(key) ?? { ...missing, reason: "flag_not_found" };
    },
    allFlags() {
      const known = [...current].filter(([, value]) => value !== undefined);
      return Object.fromEntries(known) as Record<FlagKeys, boolean>;
    },
    explain(key) {
      const outcome = outcomeOf(key);
      return outcome === undefined ? undefined : { ...outcome, rules: [] };
    },
    on: listeners.on,
    off: listeners.off,
    get status(): Status {
      return { source: "stream", current: connection !== "closed", lastUpdateAt, connection };
    },
    async close() {
      connection = "closed";
      listeners.clear();
    },
    set: (key, value) => replace(new Map(current).set(key, value)),
    reset: () => replace(new Map(initial)),
  };
}

import type { ValueType } from "@halyard/evaluation";
import type { Client, Status } from "./client.ts";
import { createEvaluator } from "./evaluator.ts";
import type { FlagTypes, FlagValue, KeysOf, ValuesOf } from "./flag-types.ts";
import { createListeners } from "./listeners.ts";
import type { Log } from "./log.ts";
import type { FlagRules, Rules } from "./rules/parse-rules.ts";
import { RuleSet } from "./rules/rule-set.ts";

/** A client for the tests of an application. It has no connection, and the values that a test gives it. */
export type TestClient<Flags extends string | FlagTypes = string> = Client<Flags> & {
  /** Sets the value of a flag for every user, and emits `change` if it differs. The value's type is that of the flag. */
  set<Key extends KeysOf<Flags, ValueType>>(key: Key, value: TestValueOf<Flags, Key>): void;
  /** Restores the values of the creation. */
  reset(): void;
};

type TestValueOf<Flags extends string | FlagTypes, Key> = Flags extends FlagTypes
  ? ValuesOf<Flags>[Key & keyof Flags]
  : FlagValue;

type TestValues = Readonly<Record<string, FlagValue | undefined>>;

/** Variation of typed flags. */
const testVariation = "test";

const silentLog: Log = { write: () => undefined, once: () => undefined };

/**
 * Creates a client that is ready and has these values: `createTestClient({ "new-checkout": true, "max-items": 5 })`.
 * Objects are copied as JSON.
 */
export function createTestClient<FlagKeys extends string = string>(
  values?: Partial<Record<FlagKeys, FlagValue>>,
): TestClient<FlagKeys>;
export function createTestClient<Flags extends FlagTypes>(
  values?: Partial<ValuesOf<Flags>>,
): TestClient<Flags>;
export function createTestClient(values: TestValues = {}): TestClient {
  const initial = new Map(Object.entries(values));
  const current = new Map(initial);
  const ruleSet = new RuleSet();
  const lastUpdateAt = new Date();
  const listeners = createListeners((event, error) =>
    console.warn(`Halyard: a listener of "${event}" threw an exception.`, error),
  );
  let connection: Status["connection"] = "streaming";

  function replace(next: Iterable<[string, FlagValue | undefined]>): void {
    const entries = [...next];
    current.clear();
    for (const [key, value] of entries) current.set(key, value);
    const keys = ruleSet.replace(rulesOf(current), undefined, "stream");
    if (keys.length > 0) listeners.emit("change", { keys, source: "stream" });
  }

  replace(initial);
  return {
    ...createEvaluator({ ruleSet, hasValidOptions: true, log: silentLog }),
    ready: async () => connection !== "closed",
    ...{ on: listeners.on, off: listeners.off },
    get status(): Status {
      return { source: "stream", current: connection !== "closed", lastUpdateAt, connection };
    },
    flagSetId: undefined,
    async close() {
      connection = "closed";
      listeners.clear();
    },
    set: (key, value) => replace([...current, [key, value]]),
    reset: () => replace(initial),
  };
}

function rulesOf(values: ReadonlyMap<string, FlagValue | undefined>): Rules {
  const flags = new Map<string, FlagRules>();
  for (const [key, value] of values) {
    const settings = settingsOf(value);
    if (settings !== undefined)
      flags.set(key, {
        key,
        rollout_percentage: 100,
        targeting_rules: [],
        version: 1,
        ...settings,
      });
  }
  return { environmentId: "test", flags, audiences: new Map(), unsupported: new Map() };
}

/** Returns the settings of a flag that has a value for every user. Undefined for a value that no flag can have. */
function settingsOf(value: unknown): Pick<FlagRules, "enabled" | "value_type"> | undefined {
  if (typeof value === "boolean") return { enabled: value };
  const isTyped =
    typeof value === "string" ||
    typeof value === "number" ||
    (typeof value === "object" && value !== null && !Array.isArray(value));
  if (!isTyped) return undefined;
  return {
    enabled: true,
    value_type: typeof value as ValueType,
    ...{ serve: { variation: testVariation }, off_variation: null },
    ...{ variations: [{ key: testVariation, value }] },
  };
}

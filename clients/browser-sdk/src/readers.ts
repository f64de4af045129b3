import type {
  Declaration,
  FallbackOf,
  Frozen,
  JsonObject,
  KeyOf,
  Widened,
} from "./declared-flags.ts";
import { textOf } from "./options.ts";
import { flagProblem, type HalyardError } from "./problem.ts";
import type { Values } from "./typed-values.ts";

/** A value with the reason for a fallback. */
export type Details<Value> = {
  readonly value: Value;
  /** The key of the variation, such as `on` and `off` of a boolean flag. Null for the fallback. */
  readonly variation: string | null;
  /**
   * The error that the fallback is returned for. Without an error, a fallback is what the flag's settings ask for.
   * - `FLAG_NOT_FOUND`: the flag is unknown, or has no value yet.
   * - `TYPE_MISMATCH`: the flag has another type.
   */
  readonly error?: "FLAG_NOT_FOUND" | "TYPE_MISMATCH";
};

/** Methods that return the value of one flag, or the fallback. None of them throws. */
export type Readers<Flags extends Declaration = string> = {
  /** Returns the value of a boolean flag. */
  isEnabled(key: KeyOf<Flags, "boolean">, fallback?: boolean): boolean;
  getString(key: KeyOf<Flags, "string">, fallback: string): string;
  getNumber(key: KeyOf<Flags, "number">, fallback: number): number;
  /** Returns a number without a fraction, within ±(2^53 − 1). Other numbers are of another type. */
  getInteger(key: KeyOf<Flags, "number">, fallback: number): number;
  /** Returns an object, deeply frozen. Its members are not checked. It is the same one until the value changes. */
  getObject<Value extends object = JsonObject>(
    key: KeyOf<Flags, "object">,
    fallback: Value,
  ): Frozen<Value>;
  /** Returns a value of the fallback's type, its variation, and the error if it is the fallback. */
  details<Key extends KeyOf<Flags>, Value extends FallbackOf<Flags, Key>>(
    key: Key,
    fallback: Value,
  ): Details<Widened<Value>>;
};

/** Creates the methods. `log` receives a problem for each call that returns the fallback because of an error. */
export function createReaders(values: () => Values, log: (problem: HalyardError) => void): Readers {
  /** In plain JavaScript, `givenKey` and `fallback` are of any type. */
  function read(givenKey: unknown, fallback: unknown, type: string): Details<never> {
    const key = textOf(givenKey);
    const all = values();
    // Keys such as `constructor` have inherited values.
    const found = Object.hasOwn(all, key) ? all[key] : undefined;
    const details = { value: fallback as never, variation: null };
    if (!found) {
      log(flagProblem("unknown_flag", `No flag "${key}"`));
      return { ...details, error: "FLAG_NOT_FOUND" };
    }
    const { value } = found;
    if (value === null) return details;
    const isInteger = type === "integer" && Number.isSafeInteger(value);
    if (isInteger || typeof value === type) return found as Details<never>;
    log(flagProblem("type_mismatch", `Flag "${key}" has the type ${typeof value}`));
    return { ...details, error: "TYPE_MISMATCH" };
  }

  return {
    isEnabled: (key, fallback = false) => read(key, fallback, "boolean").value,
    getString: (key, fallback) => read(key, fallback, "string").value,
    getNumber: (key, fallback) => read(key, fallback, "number").value,
    getInteger: (key, fallback) => read(key, fallback, "integer").value,
    getObject: (key, fallback) => read(key, fallback, "object").value,
    details: (key, fallback) => read(key, fallback, typeof fallback),
  };
}

import type { FlagValue } from "./declared-flags.ts";
import { flagProblem, type ProblemLog } from "./problem.ts";

/** The value of a flag and the key of its variation. Both are null if the flag leaves the value to the fallback. */
export type Evaluated = { readonly value: FlagValue | null; readonly variation: string | null };

/** Values of flags by key. The object is deeply frozen, and replaced when a value changes. */
export type Values = Readonly<Record<string, Evaluated>>;

/** The values of a response or an event. */
export type ValuesMessage = { values: Values; removed: readonly string[] };

/** Parses the values of a response or an event; undefined if the text is anything else. */
export function parseMessage(text: string): ValuesMessage | undefined {
  try {
    const { values, removed = [] } = parseFrozen(text) as Record<string, unknown>;
    return isValues(values) && Array.isArray(removed) ? { values, removed } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Parses JSON into deeply frozen objects. `__proto__` is an ordinary member of them.
 *
 * @throws SyntaxError for other texts
 */
export function parseFrozen(text: string): unknown {
  return JSON.parse(text, (_, part) => Object.freeze(part));
}

export function isValues(values: unknown): values is Values {
  return isObject(values) && Object.values(values).every(isObject);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A boolean, text or number is short for a variation that is named like it; `on` and `off` for booleans. */
export type InitialValue = boolean | string | number | Evaluated;

/**
 * Copies the values of an application; undefined if they are no object. An entry that is neither a boolean, text or
 * number nor has a variation is ignored, and logged.
 */
export function readInitialValues(given: unknown, log: ProblemLog): Values | undefined {
  try {
    const copy = parseFrozen(JSON.stringify(given));
    if (isObject(copy))
      return mapValues(copy as Record<string, InitialValue | null>, (value, key) => {
        if (typeof value !== "object") {
          const variation = typeof value === "boolean" ? (value ? "on" : "off") : String(value);
          return Object.freeze({ value, variation });
        }
        if (value?.variation !== undefined) return value;
        log(flagProblem("type_mismatch", `No variation of "${key}"`));
        return undefined;
      });
  } catch {
    // A circle, for example. The client starts without these values.
  }
  return undefined;
}

/** Returns a frozen object with the results for all members, without those that are undefined. */
function mapValues<From, To>(
  members: Readonly<Record<string, From>>,
  resultOf: (member: From, key: string) => To | undefined,
): Readonly<Record<string, To>> {
  const results = Object.entries(members).map(([key, member]) => [key, resultOf(member, key)]);
  return Object.freeze(Object.fromEntries(results.filter(([, result]) => result !== undefined)));
}

/** Returns the values after a delta. */
export function withDelta(before: Values, { values, removed }: ValuesMessage): Values {
  const next = { ...before, ...values };
  for (const key of removed) delete next[key];
  return next;
}

/** Returns the values `after`, with the objects of `before` for equal ones, so that readers can compare identities. */
export function reuseEqual(before: Values, after: Values): Values {
  return mapValues(after, (entry, key) => {
    const earlier = before[key];
    return earlier && isEqual(earlier, entry) ? earlier : entry;
  });
}

function isEqual(one: Evaluated, other: Evaluated): boolean {
  // Most entries of a delta are the same objects, whose values would be large texts.
  if (one === other) return true;
  const { value, variation } = one;
  return variation === other.variation && JSON.stringify(value) === JSON.stringify(other.value);
}

/** Returns the values of the boolean flags. */
export function booleansOf(values: Values): Readonly<Record<string, boolean>> {
  return mapValues(values, ({ value }) => (typeof value === "boolean" ? value : undefined));
}

/** Returns the keys whose entries are not identical, or which only one of both has. */
export function changedKeys(before: Values, after: Values): string[] {
  return Object.keys({ ...before, ...after }).filter((key) => before[key] !== after[key]);
}

import type { Received } from "./edge.ts";
import type { StoredValues } from "./stored-values.ts";
import { booleansOf, changedKeys, reuseEqual, type Values, withDelta } from "./typed-values.ts";

/** Origin of the values. `none`: the caller's fallbacks apply. */
export type Source = "stream" | "poll" | "bootstrap" | "cache" | "none";

type Change = { keys: string[]; source: Source };

/**
 * The values of the current user. All values change together, so that a reader never sees the values of two users.
 * Listeners are called last, because they may switch the user.
 */
export type UserValues = {
  all: Values;
  /** The values of the boolean flags. */
  booleans: Readonly<Record<string, boolean>>;
  source: Source;
  /** Identifies the values on every edge. */
  tag: string | undefined;
  /**
   * Switches to another user: to the given values or the stored ones. Without both, the values of the earlier user
   * remain until new ones arrive or `dropEarlier` is called.
   */
  switchTo(storedId: string, bootstrap?: Values): void;
  /** Removes the values if they are still those of the earlier user. */
  dropEarlier(): void;
  /** Applies values of the edge. Undefined: the edge has confirmed the present ones. */
  receive(received: Received | undefined, from: Source): void;
};

export function createUserValues(
  stored: StoredValues,
  onChange: (change: Change) => void,
): UserValues {
  let storedId = "";
  let areEarlier = false;

  /** Replaces the values. Returns the keys that changed. */
  function replace(next: Values, source: Source): string[] {
    const before = user.all;
    const all = reuseEqual(before, next);
    const keys = changedKeys(before, all);
    if (keys.length > 0) {
      user.all = all;
      user.booleans = booleansOf(all);
    }
    user.source = source;
    areEarlier = false;
    return keys;
  }

  function announce(keys: string[]): void {
    if (keys.length > 0) onChange({ keys, source: user.source });
  }

  const user: UserValues = {
    all: Object.freeze({}),
    booleans: Object.freeze({}),
    source: "none",
    tag: undefined,
    switchTo(id, bootstrap) {
      storedId = id;
      const found = bootstrap ? undefined : stored.read(id);
      const values = bootstrap ?? found?.values;
      user.tag = found?.tag;
      areEarlier = true;
      if (values) announce(replace(values, found ? "cache" : "bootstrap"));
    },
    dropEarlier() {
      if (areEarlier) announce(replace({}, "none"));
    },
    receive(received, from) {
      if (!received) {
        user.source = from;
        return;
      }
      const keys = replace(received.isFull ? received.values : withDelta(user.all, received), from);
      const { tag } = received;
      if (user.tag !== tag) stored.write(storedId, { values: user.all, tag });
      user.tag = tag;
      announce(keys);
    },
  };
  return user;
}

import type { Values } from "./edge.ts";
import { changedKeys, type Flags, withDelta } from "./flags.ts";
import type { StoredValues } from "./stored-values.ts";

/** Origin of the values. `none`: the caller's fallbacks apply. */
export type Source = "stream" | "poll" | "bootstrap" | "cache" | "none";

type Change = { keys: string[]; source: Source };

/**
 * The values of the current user. All values change together, so that a reader never sees the values of two users.
 * Listeners are called last, because they may switch the user.
 */
export type UserValues = {
  flags: Flags;
  source: Source;
  /** Identifies the values on every edge. */
  tag: string | undefined;
  /**
   * Switches to another user: to the given values or the stored ones. Without both, the values of the earlier user
   * remain until new ones arrive or `dropEarlier` is called.
   */
  switchTo(storedId: string, bootstrap?: Flags): void;
  /** Removes the values if they are still those of the earlier user. */
  dropEarlier(): void;
  /** Applies values of the edge. Undefined: the edge has confirmed the present ones. */
  receive(received: Values | undefined, from: Source): void;
};

export function createUserValues(
  stored: StoredValues,
  onChange: (change: Change) => void,
): UserValues {
  let storedId = "";
  let areEarlier = false;

  /** Replaces the values. Returns the keys that changed. */
  function replace(flags: Flags, source: Source): string[] {
    const keys = changedKeys(values.flags, flags);
    if (keys.length > 0) values.flags = Object.freeze({ ...flags });
    values.source = source;
    areEarlier = false;
    return keys;
  }

  function announce(keys: string[]): void {
    if (keys.length > 0) onChange({ keys, source: values.source });
  }

  const values: UserValues = {
    flags: Object.freeze({}),
    source: "none",
    tag: undefined,
    switchTo(id, bootstrap) {
      storedId = id;
      const found = bootstrap ? undefined : stored.read(id);
      const flags = bootstrap ?? found?.flags;
      values.tag = found?.tag;
      areEarlier = true;
      if (flags) announce(replace(flags, found ? "cache" : "bootstrap"));
    },
    dropEarlier() {
      if (areEarlier) announce(replace({}, "none"));
    },
    receive(received, from) {
      if (!received) {
        values.source = from;
        return;
      }
      const keys = replace(
        received.isFull ? received.flags : withDelta(values.flags, received),
        from,
      );
      const { tag } = received;
      if (values.tag !== tag) stored.write(storedId, { flags: values.flags, tag });
      values.tag = tag;
      announce(keys);
    },
  };
  return values;
}

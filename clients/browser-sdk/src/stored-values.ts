import { isValues, parseFrozen, type Values } from "./typed-values.ts";

/**
 * The last values of a few contexts in the browser's storage, so that a page starts offline. An entry has the values
 * and their tag, under a hash of the base address, the key's id and the context. The context is never stored.
 */
export type StoredValues = {
  read(id: string): Stored | undefined;
  /** Stores values. The oldest of too many entries is removed; all others if there is no room for them. */
  write(id: string, stored: Stored): void;
};

type Stored = { values: Values; tag: string | undefined };

/** The part of the browser's `Storage` that is used. */
export type ValueStorage = Pick<Storage, "getItem" | "setItem">;

const item = "halyard";
/** For example, a visitor before and after the sign-in, in two environments. */
const maxEntries = 5;

/** JSON has null instead of undefined. */
type Entry = [id: string, values: Values, tag: string | null | undefined];

/** Uses a storage that may be absent, full or forbidden. `onProblem` receives the errors of writing. */
export function createStoredValues(
  storage: ValueStorage | undefined,
  onProblem: (error: unknown) => void,
): StoredValues {
  function entries(): Entry[] {
    try {
      return (parseFrozen(storage?.getItem(item) ?? "[]") as unknown[]).filter(isEntry);
    } catch {
      // Damaged, no list, or forbidden. A forbidden storage is reported when it is written.
      return [];
    }
  }

  return {
    read(id) {
      const found = entries().find((entry) => entry[0] === id);
      return found && { values: found[1], tag: found[2] ?? undefined };
    },
    write(id, { values, tag }) {
      if (!storage) return;
      const others = entries().filter((entry) => entry[0] !== id);
      const own: Entry = [id, values, tag];
      const store = (kept: Entry[]) => storage.setItem(item, JSON.stringify(kept));
      try {
        store([own, ...others].slice(0, maxEntries));
      } catch {
        try {
          // The values of several users can be too large together.
          store([own]);
        } catch (error) {
          onProblem(error);
        }
      }
    },
  };
}

/** Returns whether a stored entry has values. Those of earlier releases, which are only booleans, are ignored. */
function isEntry(entry: unknown): entry is Entry {
  return Array.isArray(entry) && isValues(entry[1]);
}

/** Returns the browser's storage. Undefined outside of pages, and in pages that may not store anything. */
export function browserStorage(): ValueStorage | undefined {
  try {
    return typeof document === "object" ? localStorage : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a hash of 64 bits as text. It needs no secure context and no promise, unlike `crypto.subtle`. */
export function hashOf(text: string): string {
  let one = 0;
  let other = 1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    // The multipliers of FNV-1a and of MurmurHash3.
    one = Math.imul(one ^ code, 0x01000193);
    other = Math.imul(other ^ code, 0x85ebca6b);
  }
  return [one, other].map((part) => (part >>> 0).toString(36)).join("-");
}

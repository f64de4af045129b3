/** The server keys of this browser session, and the one in use. */
export type StoredKeys = { tokens: readonly string[]; current: string | undefined };

const storageKey = "halyard.keys";
const signedOutKey = "halyard.signed-out";
const none: StoredKeys = { tokens: [], current: undefined };

/**
 * Reads the keys of this tab. `sessionStorage` ends with the tab, so that no key stays on a shared computer.
 */
export function readKeys(storage: Storage): StoredKeys {
  try {
    const stored: unknown = JSON.parse(storage.getItem(storageKey) ?? "null");
    return isKeys(stored) ? { tokens: stored.tokens, current: stored.current } : none;
  } catch {
    // Another program wrote this entry. The person signs in again.
    return none;
  }
}

/** Writes the keys of this tab. Without keys, a tab that had some is marked as signed out. */
export function writeKeys(storage: Storage, keys: StoredKeys): void {
  if (keys.tokens.length > 0) {
    storage.setItem(storageKey, JSON.stringify(keys));
    storage.removeItem(signedOutKey);
    return;
  }
  if (storage.getItem(storageKey) !== null) storage.setItem(signedOutKey, "true");
  storage.removeItem(storageKey);
}

/** Returns whether the person signed out in this tab. A reload must not sign in again with the keys of another tab. */
export const hasSignedOut = (storage: Storage): boolean => storage.getItem(signedOutKey) !== null;

export function isKeys(value: unknown): value is StoredKeys {
  const { tokens, current } = (value ?? {}) as { tokens?: unknown; current?: unknown };
  return (
    Array.isArray(tokens) &&
    tokens.every((token) => typeof token === "string") &&
    (current === undefined || typeof current === "string")
  );
}

export function addKey({ tokens }: StoredKeys, token: string): StoredKeys {
  return { tokens: tokens.includes(token) ? tokens : [...tokens, token], current: token };
}

/** Removes a key. Selects no other key, because the next press would otherwise change another project. */
export function removeKey({ tokens, current }: StoredKeys, token: string): StoredKeys {
  return {
    tokens: tokens.filter((other) => other !== token),
    current: current === token ? undefined : current,
  };
}

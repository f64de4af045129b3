/** The server keys of this browser session, and the one in use. */
export type StoredKeys = { tokens: readonly string[]; current: string | undefined };

const storageKey = "halyard.keys";
const none: StoredKeys = { tokens: [], current: undefined };

/**
 * Reads the keys of this tab. `sessionStorage` ends with the tab, so that no key stays on a shared computer.
 */
export function readKeys(storage: Storage): StoredKeys {
  try {
    const stored = JSON.parse(storage.getItem(storageKey) ?? "null") as Partial<StoredKeys> | null;
    if (!Array.isArray(stored?.tokens)) return none;
    return { tokens: stored.tokens, current: stored.current };
  } catch {
    // Another program wrote this entry. The person signs in again.
    return none;
  }
}

export function writeKeys(storage: Storage, keys: StoredKeys): void {
  if (keys.tokens.length === 0) storage.removeItem(storageKey);
  else storage.setItem(storageKey, JSON.stringify(keys));
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

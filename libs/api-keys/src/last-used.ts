/**
 * When keys were last used in this process, until management has been told. The first use of a key is to
 * be told soon, because somebody may be looking whether it works; further ones every few seconds.
 */
export type LastUsed = {
  note(keyId: string, atMs: number): void;
  /**
   * Hands over what is to be told by now, up to a number of keys, and forgets it. `monotonicMs` tells
   * only how much time has passed.
   */
  take(monotonicMs: number, most: number): UsedKey[];
};

export type UsedKey = { keyId: string; atMs: number };

/** A key that is in use all the time is told of this often. */
export const tellAgainAfterMs = 5_000;

/** A few megabytes, for when nobody can be told. What is left out is a key's latest use, until its next. */
const mostRemembered = 50_000;

export function createLastUsed({ mostKeys = mostRemembered } = {}): LastUsed {
  const usedAtMs = new Map<string, number>();
  /** Of the keys that were told of lately, in the order in which that was. */
  const toldAtMs = new Map<string, number>();

  function forgetTold(monotonicMs: number): void {
    for (const [keyId, atMs] of toldAtMs) {
      if (monotonicMs - atMs < tellAgainAfterMs) return;
      toldAtMs.delete(keyId);
    }
  }

  return {
    note(keyId, atMs) {
      const known = usedAtMs.get(keyId);
      if (known === undefined && usedAtMs.size >= mostKeys) return;
      if (known === undefined || known < atMs) usedAtMs.set(keyId, atMs);
    },
    take(monotonicMs, most) {
      forgetTold(monotonicMs);
      const taken: UsedKey[] = [];
      for (const [keyId, atMs] of usedAtMs) {
        if (taken.length === most) break;
        if (toldAtMs.has(keyId)) continue;
        usedAtMs.delete(keyId);
        toldAtMs.set(keyId, monotonicMs);
        taken.push({ keyId, atMs });
      }
      return taken;
    },
  };
}

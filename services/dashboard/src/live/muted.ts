const storageKey = "halyard.muted";

/** Returns whether notices about changes of other people are muted. `sessionStorage` keeps the choice for one tab. */
export const isMuted = (storage: Storage): boolean => storage.getItem(storageKey) !== null;

export function setMuted(storage: Storage, muted: boolean): void {
  if (muted) storage.setItem(storageKey, "true");
  else storage.removeItem(storageKey);
}

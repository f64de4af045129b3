/**
 * Entries of one kind of the snapshot, by key, the newest of each. Versions decide, not arrival: what was
 * deleted stays deleted whatever older news of it turns up.
 */
export type NewestEntries<Known> = {
  /** Undefined is known of what was deleted. */
  apply(key: string, entry: { version: number }, known: Known | undefined): void;
  find(key: string): Known | undefined;
};

export function createNewestEntries<Known>(): NewestEntries<Known> {
  const stored = new Map<string, { version: number; known: Known | undefined }>();
  return {
    apply(key, { version }, known) {
      const before = stored.get(key);
      if (before === undefined || before.version < version) stored.set(key, { version, known });
    },
    find: (key) => stored.get(key)?.known,
  };
}

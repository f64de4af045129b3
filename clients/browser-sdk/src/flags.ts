/** Values of flags by key. The object is frozen, and replaced when a value changes. */
export type Flags = Readonly<Record<string, boolean>>;

/** The flags of a response or an event. */
export type FlagsMessage = { flags: Flags; removed: readonly string[] };

/** Parses the flags of a response or an event; undefined if the text is anything else. */
export function parseFlags(text: string): FlagsMessage | undefined {
  try {
    const { flags, removed = [] } = JSON.parse(text) as Record<string, unknown>;
    return isFlags(flags) && Array.isArray(removed) ? { flags, removed } : undefined;
  } catch {
    return undefined;
  }
}

export function isFlags(value: unknown): value is Flags {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every((flag) => typeof flag === "boolean")
  );
}

/** Returns the values after a delta. */
export function withDelta(flags: Flags, { flags: changed, removed }: FlagsMessage): Flags {
  const next = { ...flags, ...changed };
  for (const key of removed) delete next[key];
  return next;
}

/** Returns the keys whose values differ, or which only one of both has. */
export function changedKeys(before: Flags, after: Flags): string[] {
  return Object.keys({ ...before, ...after }).filter((key) => before[key] !== after[key]);
}

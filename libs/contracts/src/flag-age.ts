/**
 * When a flag or an environment was created, from its id: they have UUIDs of version 7, which begin with
 * the time in milliseconds. Whoever counts evaluations needs it, and nobody has to be told.
 */
const timeDigits = 12;

/** Milliseconds since 1970; of an id of another version, the beginning of time. */
export function createdAtMsOf(id: string): number {
  const digits = id.replaceAll("-", "");
  return digits[timeDigits] === "7" ? Number.parseInt(digits.slice(0, timeDigits), 16) : 0;
}

export const hourMs = 60 * 60 * 1_000;

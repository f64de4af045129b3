/**
 * Ids of flags and environments are UUIDs of version 7, which begin with the time of creation in milliseconds.
 * Counting evaluations needs that time, and no message has to carry it.
 */
const timeDigits = 12;

/** Returns the time of creation in milliseconds since 1970, or 0 for an id of another version. */
export function createdAtMsOf(id: string): number {
  const digits = id.replaceAll("-", "");
  return digits[timeDigits] === "7" ? Number.parseInt(digits.slice(0, timeDigits), 16) : 0;
}

export const hourMs = 60 * 60 * 1_000;

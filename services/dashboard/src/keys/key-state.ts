import type { ApiKey } from "../api/schema.d.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Time before expiry when a key is marked as expiring soon. */
const soonMs = 14 * dayMs;

export type KeyState = "active" | "expires soon" | "expired" | "revoked";

export function stateOf(
  { revoked_at: revokedAt, expires_at: expiresAt }: Pick<ApiKey, "revoked_at" | "expires_at">,
  now: number,
): KeyState {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null) return "active";
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) return "expired";
  return left <= soonMs ? "expires soon" : "active";
}

/** Returns whether requests with the key are accepted. */
export function works(key: Pick<ApiKey, "revoked_at" | "expires_at">, now: number): boolean {
  const state = stateOf(key, now);
  return state === "active" || state === "expires soon";
}

/** Returns the keys in the order of the page: the newest first, and keys that no longer work last. */
export function sortKeys(keys: readonly ApiKey[], now: number): readonly ApiKey[] {
  return keys.toSorted(
    (a, b) =>
      Number(works(b, now)) - Number(works(a, now)) || b.created_at.localeCompare(a.created_at),
  );
}

/** The choices for the expiry of a new key. `parent`: with the key that issues it. */
export type Expiry = "never" | "parent" | "30" | "90" | "365" | "date";

/** Returns the choices within the life of the issuing key. The first is the default. */
export function expiriesWithin(parentExpiresAt: string | null, now: number): readonly Expiry[] {
  const days = ["30", "90", "365"] as const;
  if (parentExpiresAt === null) return ["never", ...days, "date"];
  const end = Date.parse(parentExpiresAt);
  return ["parent", ...days.filter((count) => now + Number(count) * dayMs <= end), "date"];
}

/**
 * Returns the instant at which a new key expires, or null for none. Without one, the API lets the key expire with the
 * key that issues it. `date` is the local time that was entered. Undefined: it is not a time.
 */
export function expiryInstant(
  expiry: Expiry,
  date: string,
  now: number,
): string | null | undefined {
  if (expiry === "never" || expiry === "parent") return null;
  const ms = expiry === "date" ? Date.parse(date) : now + Number(expiry) * dayMs;
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/** Returns whether a key would expire after the key that issues it, which the API forbids. */
export const outlives = (expiresAt: string | null, parentExpiresAt: string | null): boolean =>
  expiresAt !== null &&
  parentExpiresAt !== null &&
  Date.parse(expiresAt) > Date.parse(parentExpiresAt);

/** Overlaps of a rotation, in seconds. At most seven days are possible. */
const overlaps = [
  { seconds: 0, label: "None: the old key stops immediately" },
  { seconds: 600, label: "10 minutes" },
  { seconds: 3_600, label: "1 hour" },
  { seconds: 24 * 3_600, label: "24 hours" },
  { seconds: 3 * 24 * 3_600, label: "3 days" },
  { seconds: 7 * 24 * 3_600, label: "7 days" },
] as const;

/**
 * Returns the overlaps that are offered. The key in use needs one: without it, this page would be signed out before
 * the new key is copied.
 */
export const overlapsFor = (isInUse: boolean) =>
  overlaps.filter(({ seconds }) => !isInUse || seconds > 0);

/** The pages warn this long before a key or a session ends. It is enough to finish and save an edit. */
const warnBeforeMs = 10 * 60_000;

/** Returns whether a key or a session ends soon. The API rejects one that has ended, which needs no warning. */
export function endsSoon(expiresAt: string | null, now: number): boolean {
  const left = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - now;
  return left > 0 && left <= warnBeforeMs;
}

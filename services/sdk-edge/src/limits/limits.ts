import type { DirectoryKey } from "@halyard/api-keys";
import {
  addressBlock,
  createAdmission,
  createRateLimit,
  describeRate,
  policyOf,
  type Rate,
  type RateLimit,
} from "@halyard/rate-limit";
import type { Refusal } from "@halyard/service";
import type { Usage } from "../usage/usage.ts";

/** Limits of requests: the rate of each key, the month of its organization, and the rate of invalid keys. */
export type Limits = {
  /** Refuses a key that asks too often, or whose organization has used up its month. */
  check(key: DirectoryKey, nowMs: number): Refusal | undefined;
  /**
   * `RateLimit-Policy` and `RateLimit` for an answer to a key, names and values in turn. Figures may be
   * as of the last second, so that no text is made for a request.
   */
  fields(key: DirectoryKey, nowMs: number): readonly string[];
  /**
   * Counts an invalid key from an address. Returns the error for an address that has sent too many. It bounds floods and
   * applications that retry forever with a revoked key; valid keys from the same address are not affected.
   */
  invalidKey(address: string, nowMs: number): Refusal | undefined;
};

/** The rate of an edge without a configured one. */
export const usualInvalidKeyRate: Rate = { requestsPerSecond: 100, burst: 1_000 };

/** So many requests a second, and as many at once; undefined: as many as one likes. */
export function createKeyRate(requestsPerSecond: number | undefined): RateLimit | undefined {
  if (requestsPerSecond === undefined) return undefined;
  const burst = Math.max(1, Math.floor(requestsPerSecond));
  return createRateLimit({ requestsPerSecond, burst });
}

export function createLimits(options: {
  keyRate: RateLimit | undefined;
  invalidKeyRate: Rate;
  usage: Usage | undefined;
}): Limits {
  const { keyRate, usage } = options;
  const monthly = (key: DirectoryKey, nowMs: number) => usage?.headers(key, nowMs) ?? none;
  const invalidKey = createInvalidKeyLimit(options.invalidKeyRate);
  if (keyRate === undefined)
    return { check: (key, nowMs) => usage?.check(key, nowMs), fields: monthly, invalidKey };

  const admit = createAdmission(
    keyRate,
    `Too many requests with this key. The limit of a key is ${describeRate(keyRate)}, on each edge. The operator raises it with SDK_REQUESTS_PER_SECOND.`,
  );
  const fieldsOf = createJointFields(keyRate);
  return {
    check(key, nowMs) {
      const tooOften = admit(key, nowMs);
      if (tooOften !== undefined) {
        usage?.used(key, nowMs);
        return nameFurtherLimits(tooOften, monthly(key, nowMs));
      }
      const usedUp = usage?.check(key, nowMs);
      return usedUp === undefined
        ? undefined
        : nameFurtherLimits(usedUp, fieldsOf(key, nowMs, none));
    },
    fields: (key, nowMs) => fieldsOf(key, nowMs, monthly(key, nowMs)),
    invalidKey,
  };
}

function createInvalidKeyLimit(rate: Rate): Limits["invalidKey"] {
  const admit = createAdmission(
    createRateLimit(rate),
    `Too many invalid keys from this address. The limit of an address is ${describeRate(rate)}, on each edge. The operator raises it with INVALID_KEYS_PER_SECOND and INVALID_KEYS_BURST.`,
  );
  return (address, nowMs) => admit({ id: addressBlock(address) }, nowMs);
}

const none: readonly string[] = [];

/** How long a key's text is used again. */
const textLifetimeMs = 1_000;

type KeptFields = { madeAtMs: number; monthly: readonly string[]; fields: readonly string[] };

/** Both limits as the two fields, each a list; kept for every key that asks, while somebody knows it. */
function createJointFields(keyRate: RateLimit) {
  const policy = policyOf(keyRate);
  const kept = new WeakMap<DirectoryKey, KeptFields>();
  return (key: DirectoryKey, nowMs: number, monthly: readonly string[]): readonly string[] => {
    const known = kept.get(key);
    if (known?.monthly === monthly && isYoung(nowMs - known.madeAtMs)) return known.fields;
    const { requests, wholeInMs } = keyRate.left(key.id, nowMs);
    const limit = `"requests";r=${requests};t=${Math.ceil(wholeInMs / 1_000)}`;
    const [, monthlyPolicy, , monthlyLimit] = monthly;
    const fields =
      monthlyPolicy === undefined
        ? ["RateLimit-Policy", policy, "RateLimit", limit]
        : [
            "RateLimit-Policy",
            `${policy}, ${monthlyPolicy}`,
            "RateLimit",
            `${limit}, ${monthlyLimit}`,
          ];
    kept.set(key, { madeAtMs: nowMs, monthly, fields });
    return fields;
  };
}

/** Not so where the clock was put back. */
function isYoung(ageMs: number): boolean {
  return ageMs >= 0 && ageMs < textLifetimeMs;
}
/**
 * A refusal by one limit that names further ones too, so that both fields are lists of all that limit the
 * caller, with the one that it is about first. `fields`: names and values in turn, or none.
 */
export function nameFurtherLimits(refusal: Refusal, fields: readonly string[]): Refusal {
  const [, policy, , limit] = fields;
  if (policy === undefined) return refusal;
  const { "ratelimit-policy": ownPolicy, ratelimit: ownLimit } = refusal.headers ?? {};
  const joint = {
    "ratelimit-policy": `${ownPolicy}, ${policy}`,
    ratelimit: `${ownLimit}, ${limit}`,
  };
  return { ...refusal, headers: { ...refusal.headers, ...joint } };
}

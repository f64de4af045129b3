import type { DirectoryKey } from "@halyard/api-keys";
import {
  createAdmission,
  createRateLimit,
  describeRate,
  policyOf,
  type RateLimit,
} from "@halyard/rate-limit";
import type { Refusal } from "@halyard/service";
import type { Usage } from "../usage/usage.ts";
import { nameFurtherLimits } from "./name-further-limits.ts";

/** What may hold up a request: how often its key asks, and what its organization has used. */
export type Limits = {
  /** Refuses a key that asks too often, or whose organization has used up its month. */
  check(key: DirectoryKey, nowMs: number): Refusal | undefined;
  /**
   * `RateLimit-Policy` and `RateLimit` for an answer to a key, names and values in turn. Figures may be
   * as of the last second, so that no text is made for a request.
   */
  fields(key: DirectoryKey, nowMs: number): readonly string[];
};

/** So many requests a second, and as many at once; undefined: as many as one likes. */
export function createKeyRate(requestsPerSecond: number | undefined): RateLimit | undefined {
  if (requestsPerSecond === undefined) return undefined;
  const burst = Math.max(1, Math.floor(requestsPerSecond));
  return createRateLimit({ requestsPerSecond, burst });
}

export function createLimits(options: {
  keyRate: RateLimit | undefined;
  usage: Usage | undefined;
}): Limits {
  const { keyRate, usage } = options;
  const monthly = (key: DirectoryKey, nowMs: number) => usage?.headers(key, nowMs) ?? none;
  if (keyRate === undefined)
    return { check: (key, nowMs) => usage?.check(key, nowMs), fields: monthly };

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
  };
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

import type { DirectoryKey } from "@halyard/api-keys";
import type { Problem } from "@halyard/http";
import {
  addressBlock,
  createAdmission,
  createRateLimit,
  describeRate,
  type LimitMember,
  policyOf,
  type Rate,
} from "@halyard/rate-limit";

/** Limits of requests: the rate of each key, the month of its organization, and the rate of invalid keys. */
export type Limits = {
  /** Returns the problem of a key that exceeds its rate limit or whose organization has used up its month. */
  check(key: DirectoryKey, nowMs: number): Problem | undefined;
  /**
   * Returns the problem of a usage report with a key that exceeds its rate limit, or whose organization sends too many
   * reports. The month does not limit reports. Client keys may send no reports, so theirs do not count.
   */
  checkReport(key: DirectoryKey, nowMs: number): Problem | undefined;
  /** Returns the problem of a request with a key that exceeds its rate limit. The month does not limit it. */
  checkRate(key: DirectoryKey, nowMs: number): Problem | undefined;
  /** Returns the fields about the limits of a key. Figures may be a second old, so that few texts are made. */
  fields(key: DirectoryKey, nowMs: number): LimitFields;
  /**
   * Counts an invalid key from an address. Returns the error for an address that has sent too many. It bounds floods and
   * applications that retry forever with a revoked key; valid keys from the same address are not affected.
   */
  invalidKey(address: string, nowMs: number): Problem | undefined;
};

export type LimitFields = {
  readonly members: readonly LimitMember[];
  /** `RateLimit-Policy` and `RateLimit`, names and values in turn; empty without a member. */
  readonly headers: readonly string[];
};

export const noLimitFields: LimitFields = { members: [], headers: [] };

/** A limit of requests with a key. */
type Limit = {
  check(key: DirectoryKey, nowMs: number): Problem | undefined;
  /** Returns the same object while its texts are the same; undefined while it limits nothing. */
  member(key: DirectoryKey, nowMs: number): LimitMember | undefined;
};

export type KeyUses = {
  /** Records the use of a key by a request that is rejected without a `check` of the month. */
  used(key: DirectoryKey, nowMs: number): void;
};

export function createLimits(options: {
  /** Rate limit of each key. Undefined: no limit. */
  requestsPerSecond?: number | undefined;
  /** Rate limit of the usage reports of each organization. */
  reportsPerSecond: number;
  invalidKeyRate: Rate;
  /** The limit of each organization's month, which also records the use of keys. Undefined: no limit. */
  usage: (Limit & KeyUses) | undefined;
}): Limits {
  const { requestsPerSecond, usage } = options;
  const rates = requestsPerSecond === undefined ? [] : [createKeyLimit(requestsPerSecond, usage)];
  const limits: readonly Limit[] = usage === undefined ? rates : [...rates, usage];
  const reports = createReportLimit(options.reportsPerSecond, usage);

  function checkEach(
    checked: readonly Limit[],
    key: DirectoryKey,
    nowMs: number,
  ): Problem | undefined {
    for (const limit of checked) {
      const problem = limit.check(key, nowMs);
      if (problem === undefined) continue;
      const others = limits
        .filter((other) => other !== limit)
        .map((other) => other.member(key, nowMs))
        .filter((member) => member !== undefined);
      return nameFurtherLimits(problem, others);
    }
    return undefined;
  }

  return {
    check: (key, nowMs) => checkEach(limits, key, nowMs),
    checkReport: (key, nowMs) => checkEach([...rates, reports], key, nowMs),
    checkRate: (key, nowMs) => checkEach(rates, key, nowMs),
    fields: createFields(limits),
    invalidKey: createInvalidKeyLimit(options.invalidKeyRate),
  };
}

/** Joins the members of all limits. The fields of a key are reused until one of its members changes. */
function createFields(limits: readonly Limit[]): Limits["fields"] {
  const cache = new WeakMap<DirectoryKey, CachedFields>();

  function isCurrent({ ofLimits }: CachedFields, key: DirectoryKey, nowMs: number): boolean {
    for (let index = 0; index < limits.length; index += 1)
      if (limits[index]?.member(key, nowMs) !== ofLimits[index]) return false;
    return true;
  }

  return (key, nowMs) => {
    const known = cache.get(key);
    if (known !== undefined && isCurrent(known, key, nowMs)) return known.fields;
    const ofLimits = limits.map((limit) => limit.member(key, nowMs));
    const fields = fieldsOf(ofLimits.filter((member) => member !== undefined));
    cache.set(key, { ofLimits, fields });
    return fields;
  };
}

type CachedFields = {
  /** The member of each limit; undefined for a limit without one. */
  ofLimits: readonly (LimitMember | undefined)[];
  fields: LimitFields;
};

function fieldsOf(members: readonly LimitMember[]): LimitFields {
  if (members.length === 0) return noLimitFields;
  const { policy, limit } = joined(members);
  return { members, headers: ["RateLimit-Policy", policy, "RateLimit", limit] };
}

function joined(members: readonly LimitMember[]): LimitMember {
  return {
    policy: members.map(({ policy }) => policy).join(", "),
    limit: members.map(({ limit }) => limit).join(", "),
  };
}

/** Creates the rate limit of each key. A rejected request also counts as a use of its key. */
function createKeyLimit(requestsPerSecond: number, usage: KeyUses | undefined): Limit {
  const burst = Math.max(1, Math.floor(requestsPerSecond));
  const keyRate = createRateLimit({ requestsPerSecond, burst });
  const policy = policyOf(keyRate);
  const cache = new WeakMap<DirectoryKey, { madeAtMs: number; member: LimitMember }>();
  const admit = createAdmission(
    keyRate,
    `Too many requests with this key. The limit of a key is ${describeRate(keyRate)}, on each edge. The operator raises it with SDK_REQUESTS_PER_SECOND.`,
  );
  return {
    check(key, nowMs) {
      const problem = admit(key, nowMs);
      if (problem !== undefined) usage?.used(key, nowMs);
      return problem;
    },
    member(key, nowMs) {
      const known = cache.get(key);
      if (known !== undefined && isYoung(nowMs - known.madeAtMs)) return known.member;
      const { requests, fullInMs } = keyRate.left(key.id, nowMs);
      const limit = `"requests";r=${requests};t=${Math.ceil(fullInMs / 1_000)}`;
      const member = { policy, limit };
      cache.set(key, { madeAtMs: nowMs, member });
      return member;
    },
  };
}

/** Size of the burst: after an outage, all processes of an application send their reports at about the same time. */
const reportBurstSeconds = 10;

/**
 * Creates the rate limit of the usage reports of each organization. Reports are free, and each one is a row that
 * usage-metering keeps for two days.
 */
function createReportLimit(requestsPerSecond: number, usage: KeyUses | undefined): Limit {
  const burst = Math.ceil(requestsPerSecond * reportBurstSeconds);
  const rate = createRateLimit({ requestsPerSecond, burst });
  const admit = createAdmission(
    rate,
    `Too many usage reports of this organization. The limit is ${describeRate(rate)}, on each edge. The operator raises it with USAGE_REPORTS_PER_SECOND.`,
  );
  return {
    check(key, nowMs) {
      if (key.kind === "client") return undefined;
      const problem = admit({ id: key.organizationId }, nowMs);
      if (problem !== undefined) usage?.used(key, nowMs);
      return problem;
    },
    member: () => undefined,
  };
}

/** Time for which the text of a key is reused. */
const textLifetimeMs = 1_000;

/** Returns whether a text can be reused. False if the clock was set back. */
function isYoung(ageMs: number): boolean {
  return ageMs >= 0 && ageMs < textLifetimeMs;
}

function createInvalidKeyLimit(rate: Rate): Limits["invalidKey"] {
  const admit = createAdmission(
    createRateLimit(rate),
    `Too many invalid keys from this address. The limit of an address is ${describeRate(rate)}, on each edge. The operator raises it with INVALID_KEYS_PER_SECOND and INVALID_KEYS_BURST.`,
  );
  return (address, nowMs) => admit({ id: addressBlock(address) }, nowMs);
}

/** Adds the members of other limits to the problem of one limit, whose own member comes first. */
export function nameFurtherLimits(problem: Problem, others: readonly LimitMember[]): Problem {
  if (others.length === 0) return problem;
  const { "ratelimit-policy": ownPolicy, ratelimit: ownLimit } = problem.headers ?? {};
  const { policy, limit } = joined(others);
  const joint = {
    "ratelimit-policy": `${ownPolicy}, ${policy}`,
    ratelimit: `${ownLimit}, ${limit}`,
  };
  return { ...problem, headers: { ...problem.headers, ...joint } };
}

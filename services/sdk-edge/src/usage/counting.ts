import type { DirectoryKey } from "@halyard/api-keys";
import { hourMs, type QuotaEntry, type UsageEndpoint } from "@halyard/contracts";
import {
  createOrganizationMonths,
  type OrganizationMonth,
  type OrganizationMonths,
  usedOf,
} from "../admission/organization-months.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { createFlagCounters, type EvaluatedFlag, type FlagCounts } from "./flag-counts.ts";
import type { Usage } from "./usage.ts";

/**
 * Counts requests and evaluations in memory. A request looks up its key and increments a few numbers. `take` returns
 * all counts and resets them, so that no count outlives its key or environment.
 *
 * Hour and month are those of the time that the request has read from the clock.
 */
export type Counting = {
  usage: Usage;
  /** Returns the counts since the last call; undefined if there are none. */
  take(): Tally | undefined;
  /** Confirms that the broker has acknowledged everything that was taken. */
  arrived(): void;
  /** Applies the number of requests that usage-metering has counted for an organization's month. */
  applyQuota(entry: QuotaEntry): void;
  figures(): CountingFigures;
};

type CountingFigures = {
  /** Requests that were taken. */
  taken: number;
  /** Requests that were taken and have not arrived. */
  underWay: number;
  /** Requests that were rejected because the month was used up. */
  rejected: number;
  /** Counts that were lost because a bound was reached. */
  dropped: { requests: number; evaluations: number; keys: number };
};

export type Tally = {
  readonly environments: readonly EnvironmentHour[];
  /** Last use by key id. 0: no request with the key since the last tally. */
  readonly keys: ReadonlyMap<string, { readonly usedAtMs: number }>;
};

type EnvironmentIds = Pick<DirectoryKey, "organizationId" | "projectId" | "environmentId">;

/** The counts of one environment within one hour. */
export type EnvironmentHour = Readonly<EnvironmentIds> &
  FlagCounts & {
    readonly hourBeganMs: number;
    readonly requests: Record<UsageEndpoint, number>;
    bulkAnswers: number;
    bulkAnsweredAtMs: number;
  };

/**
 * Maximum number of counters kept while NATS is unavailable: some tens of megabytes. A thousand busy environments reach
 * it in two days. Environments and flags count once for each hour, and variations count like flags.
 */
type Bounds = { environments: number; flags: number; keys: number };
const defaultBounds: Bounds = { environments: 50_000, flags: 200_000, keys: 100_000 };

/**
 * Maximum time by which a request may precede the current hour, because its response was late or the clock was
 * corrected. It counts in the current hour. If the clock is set back further, an earlier hour begins.
 */
const maxLatenessMs = 5 * 60 * 1_000;

/** The counters for the requests of a key. */
type KeyUse = {
  usedAtMs: number;
  environment: EnvironmentHour;
  readonly organization: OrganizationMonth;
};

export function createCounting(options: {
  holder: Pick<SnapshotHolder, "snapshot">;
  bounds?: Bounds;
}): Counting {
  const { holder, bounds = defaultBounds } = options;
  const months = createOrganizationMonths({ limitOf: (id) => limitOf(holder.snapshot, id) });
  const counts = createCounts(months, bounds);
  const figures = { taken: 0, underWay: 0, rejected: 0 };

  const usage: Usage = {
    used: counts.markUsed,
    limitsChanged(organizationIds) {
      for (const organizationId of organizationIds) months.limitChanged(organizationId);
    },
    check(key, nowMs) {
      counts.markUsed(key, nowMs);
      const { organization } = counts.of(key, nowMs);
      if (usedOf(organization) < organization.limit) return undefined;
      figures.rejected += 1;
      return months.problem(organization, nowMs);
    },
    count(key, endpoint, nowMs) {
      const { environment, organization } = counts.of(key, nowMs);
      environment.requests[endpoint] += 1;
      organization.fresh += 1;
    },
    answeredAll(key, nowMs) {
      const { environment } = counts.of(key, nowMs);
      environment.bulkAnswers += 1;
      environment.bulkAnsweredAtMs = nowMs;
    },
    answeredOne: (key, flagId, nowMs, variation) =>
      counts.addEvaluation(counts.of(key, nowMs).environment, { flagId, nowMs, variation }),
    member: (key, nowMs) => months.member(counts.of(key, nowMs).organization, nowMs),
  };

  return {
    usage,
    take() {
      const tally = counts.take();
      months.take();
      const requests = tally.environments.reduce((sum, one) => sum + requestsOf(one), 0);
      figures.taken += requests;
      figures.underWay += requests;
      return tally.environments.length === 0 && tally.keys.size === 0 ? undefined : tally;
    },
    arrived() {
      figures.underWay = 0;
    },
    applyQuota: months.applyQuota,
    figures: () => ({ ...figures, dropped: counts.dropped }),
  };
}

/** The counts since the last tally, found by key. */
function createCounts(months: OrganizationMonths, bounds: Bounds) {
  const dropped = { requests: 0, evaluations: 0, keys: 0 };
  let hourBeganMs = Number.POSITIVE_INFINITY;
  /** By hour and environment. */
  let environments = new Map<string, EnvironmentHour>();
  /** Counts for all environments beyond the bound. It is never sent. */
  let overflow = emptyHour({ organizationId: "", projectId: "", environmentId: "" }, 0);
  const flags = createFlagCounters(bounds.flags);
  let keys = new Map<string, KeyUse>();

  function environmentOf(key: DirectoryKey): EnvironmentHour {
    const name = `${hourBeganMs} ${key.environmentId}`;
    const known = environments.get(name);
    if (known !== undefined) return known;
    if (environments.size >= bounds.environments) return overflow;
    const environment = emptyHour(key, hourBeganMs);
    environments.set(name, environment);
    return environment;
  }

  function of(key: DirectoryKey, nowMs: number): KeyUse {
    if (!(nowMs < hourBeganMs + hourMs && nowMs >= hourBeganMs - maxLatenessMs)) {
      hourBeganMs = Math.floor(nowMs / hourMs) * hourMs;
      months.advanceTo(nowMs);
    }
    const known = keys.get(key.id);
    if (known !== undefined) {
      if (known.environment.hourBeganMs !== hourBeganMs) known.environment = environmentOf(key);
      return known;
    }
    const organization = months.of(key.organizationId);
    const use = { usedAtMs: 0, environment: environmentOf(key), organization };
    if (keys.size < bounds.keys) keys.set(key.id, use);
    return use;
  }

  return {
    dropped,
    of,
    /** Records the use of a key, even by a rejected request. */
    markUsed(key: DirectoryKey, nowMs: number): void {
      of(key, nowMs).usedAtMs = nowMs;
      if (keys.size >= bounds.keys && !keys.has(key.id)) dropped.keys += 1;
    },
    addEvaluation(environment: EnvironmentHour, evaluated: EvaluatedFlag): void {
      if (environment === overflow || !flags.add(environment, evaluated)) dropped.evaluations += 1;
    },
    take(): Tally {
      const tally = { environments: [...environments.values()].filter(isUsed), keys };
      dropped.requests += requestsOf(overflow);
      environments = new Map();
      overflow = emptyHour(overflow, 0);
      flags.reset();
      keys = new Map();
      return tally;
    },
  };
}

function emptyHour(ids: EnvironmentIds, hourBeganMs: number): EnvironmentHour {
  const { organizationId, projectId, environmentId } = ids;
  return {
    ...{ hourBeganMs, organizationId, projectId, environmentId },
    requests: {
      ...{ flags: 0, values: 0, evaluate: 0, stream: 0, ruleset: 0, ruleset_stream: 0 },
      ...{ ofrep_flags: 0, ofrep_flag: 0, ofrep_stream: 0 },
    },
    bulkAnswers: 0,
    bulkAnsweredAtMs: 0,
    flags: undefined,
    variationCounters: 0,
  };
}

/** Returns false if all requests were rejected. */
function isUsed(environment: EnvironmentHour): boolean {
  const { bulkAnswers, flags } = environment;
  return bulkAnswers > 0 || flags !== undefined || requestsOf(environment) > 0;
}

function requestsOf({ requests }: EnvironmentHour): number {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
}

function limitOf(snapshot: Snapshot | undefined, organizationId: string): number {
  return snapshot?.limits.get(organizationId)?.requests_per_month ?? Number.POSITIVE_INFINITY;
}

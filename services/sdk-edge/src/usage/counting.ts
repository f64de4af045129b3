import type { QuotaEntry } from "@halyard/contracts";
import { isDeleted, type Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { createEnvironmentHours, type EnvironmentBounds } from "./environment-hours.ts";
import { createKeyUses } from "./key-uses.ts";
import { createOrganizationMonths, usedOf } from "./organization-months.ts";
import { requestsOf, type Tally } from "./tally.ts";
import type { Usage } from "./usage.ts";
import { createYoungFlags } from "./young-flags.ts";

/**
 * Counts requests and evaluations. A request looks its key up and raises a few numbers. Who sends them,
 * from time to time, takes all that was counted and leaves nothing behind: what the first request of a
 * key finds missing then is made anew, and nothing has to be tidied up when keys or environments go.
 *
 * Hour and month are those of the instant that the request has read from the clock.
 */
export type Counting = {
  usage: Usage;
  /** All that was counted since the last time; undefined when nothing was. */
  take(): Tally | undefined;
  /** What was taken last has arrived. */
  arrived(): void;
  /** What usage-metering has counted of an organization's month. */
  hear(entry: QuotaEntry): void;
  figures(): CountingFigures;
};

export type CountingFigures = {
  /** Requests that were counted and taken, so far. */
  taken: number;
  /** Of them, those that have not arrived yet. */
  underWay: number;
  /** Requests that were refused because the month was used up. */
  refused: number;
  /** What had no room, so far. */
  dropped: { requests: number; evaluations: number; keys: number };
};

/**
 * How much is kept while it cannot be sent. A thousand busy environments fill that in two days; it is
 * some tens of megabytes. Single flags have a room of their own, and take none from requests. One
 * organization can fill a tenth of it, and one environment so much as five hundred flags need in ten
 * hours.
 */
export type Bounds = EnvironmentBounds & { keys: number };
const defaultBounds: Bounds = {
  environments: 50_000,
  flags: { all: 200_000, ofOrganization: 20_000, ofEnvironment: 5_000 },
  keys: 100_000,
};

export function createCounting(options: {
  holder: Pick<SnapshotHolder, "snapshot" | "subscribe">;
  bounds?: Bounds;
}): Counting {
  const { holder, bounds = defaultBounds } = options;
  const young = createYoungFlags({
    flagsOf: (environmentId) => holder.snapshot?.environments.get(environmentId),
  });
  const hours = createEnvironmentHours({ young, bounds });
  const months = createOrganizationMonths({ limitOf: (id) => limitOf(holder.snapshot, id) });
  const uses = createKeyUses({ hours, months, mostKeys: bounds.keys });
  const sums = { taken: 0, underWay: 0, refused: 0 };

  holder.subscribe((change) => {
    hours.flagsChanged(change);
    for (const organizationId of change.changed.organizations) months.limitChanged(organizationId);
  });

  const usage: Usage = {
    used(key, nowMs) {
      uses.of(key, nowMs).usedAtMs = nowMs;
    },
    check(key, nowMs) {
      const use = uses.of(key, nowMs);
      // Also when it is refused, now or later: it must not look like a key that nobody needs.
      use.usedAtMs = nowMs;
      const { organization } = use;
      if (usedOf(organization) < organization.limit) return undefined;
      sums.refused += 1;
      return months.refusal(organization, nowMs);
    },
    count(key, endpoint, nowMs) {
      const { environment, organization } = uses.of(key, nowMs);
      environment.requests[endpoint] += 1;
      organization.fresh += 1;
    },
    answeredAll(key, nowMs) {
      const { environment } = uses.of(key, nowMs);
      environment.bulkAnswers += 1;
      environment.bulkAnsweredAtMs = nowMs;
    },
    answeredOne: (key, flagId, nowMs) =>
      hours.countFlag(uses.of(key, nowMs).environment, flagId, 1, nowMs),
    headers: (key, nowMs) => months.fields(uses.of(key, nowMs).organization, nowMs),
  };

  return {
    usage,
    take() {
      const environments = hours.take();
      const keys = uses.take();
      months.take();
      const requests = environments.reduce((sum, one) => sum + requestsOf(one), 0);
      sums.taken += requests;
      sums.underWay += requests;
      return environments.length === 0 && keys.size === 0 ? undefined : { environments, keys };
    },
    arrived() {
      sums.underWay = 0;
    },
    hear: months.hear,
    figures: () => ({ ...sums, dropped: { ...hours.dropped, keys: uses.dropped() } }),
  };
}

function limitOf(snapshot: Snapshot | undefined, organizationId: string): number {
  const organization = snapshot?.organizations.get(organizationId);
  if (organization === undefined || isDeleted(organization)) return Number.POSITIVE_INFINITY;
  return organization.limits.requests_per_month ?? Number.POSITIVE_INFINITY;
}

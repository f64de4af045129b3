/**
 * The next due time of a webhook. `planClaims` decides how many deliveries to claim for each webhook, so that no target
 * delays the others.
 *
 * The number of concurrent attempts is bounded. An attempt begins as quick, and lingers after 500 ms. Only quick
 * attempts count against the bound on new attempts, so targets that begin to hang delay the others by 500 ms instead of
 * their time-out. A webhook whose last attempt took long is slow, and few slow attempts may run at a time.
 *
 * A webhook that is slow or has a lingering attempt gets no second attempt. The others may have several concurrent
 * attempts while their organization has few. Beyond that, a webhook gets an attempt only if it has none. Therefore the
 * hanging targets of an organization leave room for its other webhooks.
 *
 * Attempts are granted in rounds. The webhooks with the fewest attempts come first, and among them the one with the
 * earliest due time.
 */
export type Lane = {
  webhookId: string;
  organizationId: string;
  /** The webhook's last attempt took long. */
  slow: boolean;
  /** Zero or negative if a delivery is due. */
  dueInMs: number;
};

/** An attempt in progress. */
export type RunningAttempt = {
  webhookId: string;
  organizationId: string;
  kind: "quick" | "lingering" | "slow";
};

/** Maximum numbers of concurrent attempts. Open attempts are quick or lingering. */
export type Bounds = {
  process: { quick: number; open: number; slow: number };
  organization: {
    quick: number;
    /** Applies only while the process has at most half of its open attempts. */
    open: number;
    slow: number;
    /** Number of open attempts at which the limit becomes one attempt per webhook. */
    sideBySide: number;
  };
  webhook: number;
};

/**
 * Default bounds. A process makes at most 1,024 concurrent attempts, each with a socket and a payload. A quarter of the
 * 256 attempts that may be new is for slow webhooks. An organization with 64 open attempts may have 128 more, each for another
 * webhook, and a project has 100 webhooks by default.
 */
export const defaultBounds: Bounds = {
  process: { quick: 192, open: 960, slow: 64 },
  organization: { quick: 96, open: 192, slow: 16, sideBySide: 64 },
  webhook: 16,
};

/** A search for lanes. It excludes lanes that may not begin an attempt. */
export type LaneSearch = {
  slow: boolean;
  limit: number;
  exceptWebhooks: string[];
  exceptOrganizations: string[];
};

export type PlannedClaim = { webhookId: string; atMost: number };

/** Maximum number of lanes per search: twice the bound on new attempts, so that the planner can choose. */
const lanesPerSearch = 512;

export function searchesFor(running: readonly RunningAttempt[], bounds: Bounds): LaneSearch[] {
  const usage = countUsage(running);
  const webhooks = new Map(running.map((attempt) => [attempt.webhookId, attempt]));
  return [false, true]
    .filter((slow) => processAllows(usage.process, bounds, slow))
    .map((slow) => ({
      slow,
      limit: lanesPerSearch,
      exceptWebhooks: [...webhooks.values()]
        .filter((attempt) => !mayBegin(usage, bounds, { ...attempt, slow }))
        .map(({ webhookId }) => webhookId),
      exceptOrganizations: [...usage.organizations]
        .filter(
          ([, organization]) => !organizationAllows(usage.process, organization, bounds, slow),
        )
        .map(([organizationId]) => organizationId),
    }));
}

export function planClaims(
  lanes: readonly Lane[],
  running: readonly RunningAttempt[],
  bounds: Bounds,
): PlannedClaim[] {
  const usage = countUsage(running);
  const planned = new Map<string, number>();
  const underWay = (id: string) => total(usage.webhooks.get(id) ?? none);
  let waiting = lanes
    .filter(({ dueInMs }) => dueInMs <= 0)
    .sort(
      (one, other) =>
        underWay(one.webhookId) - underWay(other.webhookId) || one.dueInMs - other.dueInMs,
    );
  while (waiting.length > 0)
    waiting = waiting.filter((lane) => {
      if (!mayBegin(usage, bounds, lane)) return false;
      planned.set(lane.webhookId, (planned.get(lane.webhookId) ?? 0) + 1);
      add(usage, { ...lane, kind: lane.slow ? "slow" : "quick" });
      return true;
    });
  return [...planned].map(([webhookId, atMost]) => ({ webhookId, atMost }));
}

type Count = Record<RunningAttempt["kind"], number>;
type Usage = { process: Count; organizations: Map<string, Count>; webhooks: Map<string, Count> };

const none: Count = { quick: 0, lingering: 0, slow: 0 };
const open = ({ quick, lingering }: Count) => quick + lingering;
const total = ({ quick, lingering, slow }: Count) => quick + lingering + slow;

function countUsage(running: readonly RunningAttempt[]): Usage {
  const usage: Usage = { process: { ...none }, organizations: new Map(), webhooks: new Map() };
  for (const attempt of running) add(usage, attempt);
  return usage;
}

function add(usage: Usage, { kind, organizationId, webhookId }: RunningAttempt): void {
  usage.process[kind] += 1;
  increment(usage.organizations, organizationId, kind);
  increment(usage.webhooks, webhookId, kind);
}

function increment(counts: Map<string, Count>, id: string, kind: RunningAttempt["kind"]): void {
  const count = counts.get(id) ?? { ...none };
  count[kind] += 1;
  counts.set(id, count);
}

function mayBegin(
  usage: Usage,
  bounds: Bounds,
  { webhookId, organizationId, slow }: Pick<Lane, "webhookId" | "organizationId" | "slow">,
): boolean {
  const organization = usage.organizations.get(organizationId) ?? none;
  const webhook = usage.webhooks.get(webhookId) ?? none;
  if (!processAllows(usage.process, bounds, slow)) return false;
  if (!organizationAllows(usage.process, organization, bounds, slow)) return false;
  if (total(webhook) === 0) return true;
  if (slow || webhook.lingering > 0 || total(webhook) >= bounds.webhook) return false;
  return open(organization) < bounds.organization.sideBySide;
}

const processAllows = (process: Count, bounds: Bounds, slow: boolean): boolean =>
  slow
    ? process.slow < bounds.process.slow
    : process.quick < bounds.process.quick && open(process) < bounds.process.open;

/** Returns whether an organization may begin another attempt for a webhook that has none. */
function organizationAllows(
  process: Count,
  organization: Count,
  bounds: Bounds,
  slow: boolean,
): boolean {
  const bound = bounds.organization;
  if (slow) return organization.slow < bound.slow;
  if (organization.quick >= bound.quick) return false;
  if (open(organization) < bound.sideBySide) return true;
  return open(organization) < bound.open && open(process) < bounds.process.open / 2;
}

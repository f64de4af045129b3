/**
 * Decides how many deliveries to claim for each webhook, so that no target takes the slots of the others.
 *
 * Every attempt takes a slot until it ends. It begins as quick and lingers after a moment. Only quick
 * attempts count against the bound on what begins, so targets that begin to hang delay the others by that
 * moment, not by their time-out. A webhook whose last attempt took long is slow, and its attempts take one of
 * the few slow slots.
 *
 * A webhook that is slow or has a lingering attempt gets no second attempt. The others may have several side
 * by side while their organization has few attempts. Beyond that, a webhook gets an attempt only if it has
 * none. Therefore the hanging targets of an organization leave slots for its other webhooks.
 *
 * Slots are dealt in turns: the webhooks with the fewest attempts come first, and among them the one that
 * has been due longest.
 */
export type Lane = {
  webhookId: string;
  organizationId: string;
  /** Its target's last attempt took long. */
  slow: boolean;
  /** Not positive when something is due. */
  dueInMs: number;
};

/** A slot in use by one attempt. */
export type Slot = {
  webhookId: string;
  organizationId: string;
  kind: "quick" | "lingering" | "slow";
};

/** Maximum numbers of attempts. Open ones are quick or lingering. */
export type Bounds = {
  process: { quick: number; open: number; slow: number };
  organization: {
    quick: number;
    /** Reached only while at least half of the process's are free. */
    open: number;
    slow: number;
    /** Number of open attempts at which its webhooks get one each. */
    sideBySide: number;
  };
  webhook: number;
};

/**
 * A process makes at most 1,024 attempts at a time, each with a socket and a payload. Of the 256 slots in
 * which attempts begin, a quarter is for slow webhooks. With 64 attempts side by side, an organization has
 * slots for 128 more webhooks; a project has at most a hundred.
 */
export const defaultBounds: Bounds = {
  process: { quick: 192, open: 960, slow: 64 },
  organization: { quick: 96, open: 192, slow: 16, sideBySide: 64 },
  webhook: 16,
};

/** Which lanes to ask for: none whose slots are taken. */
export type LaneSearch = {
  slow: boolean;
  limit: number;
  exceptWebhooks: string[];
  exceptOrganizations: string[];
};

export type PlannedClaim = { webhookId: string; atMost: number };

/** Twice as many lanes as there are slots, so that there is a choice of whose turn it is. */
const lanesPerSearch = 512;

export function searchesFor(slots: readonly Slot[], bounds: Bounds): LaneSearch[] {
  const usage = countUsage(slots);
  const underWay = new Map(slots.map((slot) => [slot.webhookId, slot]));
  return [false, true]
    .filter((slow) => hasRoom(usage.process, bounds, slow))
    .map((slow) => ({
      slow,
      limit: lanesPerSearch,
      exceptWebhooks: [...underWay.values()]
        .filter((slot) => !mayBegin(usage, bounds, { ...slot, slow }))
        .map(({ webhookId }) => webhookId),
      exceptOrganizations: [...usage.organizations]
        .filter(
          ([, organization]) => !organizationHasRoom(usage.process, organization, bounds, slow),
        )
        .map(([organizationId]) => organizationId),
    }));
}

export function planClaims(
  lanes: readonly Lane[],
  slots: readonly Slot[],
  bounds: Bounds,
): PlannedClaim[] {
  const usage = countUsage(slots);
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
      take(usage, { ...lane, kind: lane.slow ? "slow" : "quick" });
      return true;
    });
  return [...planned].map(([webhookId, atMost]) => ({ webhookId, atMost }));
}

type Count = Record<Slot["kind"], number>;
type Usage = { process: Count; organizations: Map<string, Count>; webhooks: Map<string, Count> };

const none: Count = { quick: 0, lingering: 0, slow: 0 };
const open = ({ quick, lingering }: Count) => quick + lingering;
const total = ({ quick, lingering, slow }: Count) => quick + lingering + slow;

function countUsage(slots: readonly Slot[]): Usage {
  const usage: Usage = { process: { ...none }, organizations: new Map(), webhooks: new Map() };
  for (const slot of slots) take(usage, slot);
  return usage;
}

function take(usage: Usage, slot: Slot): void {
  usage.process[slot.kind] += 1;
  add(usage.organizations, slot.organizationId, slot.kind);
  add(usage.webhooks, slot.webhookId, slot.kind);
}

function add(counts: Map<string, Count>, id: string, kind: Slot["kind"]): void {
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
  if (!hasRoom(usage.process, bounds, slow)) return false;
  if (!organizationHasRoom(usage.process, organization, bounds, slow)) return false;
  if (total(webhook) === 0) return true;
  if (slow || webhook.lingering > 0 || total(webhook) >= bounds.webhook) return false;
  return open(organization) < bounds.organization.sideBySide;
}

const hasRoom = (process: Count, bounds: Bounds, slow: boolean): boolean =>
  slow
    ? process.slow < bounds.process.slow
    : process.quick < bounds.process.quick && open(process) < bounds.process.open;

/** Returns whether an organization may begin an attempt of a webhook without attempts. */
function organizationHasRoom(
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

/**
 * Decides how many deliveries of which webhook may be claimed, so that no target can take what the
 * others need.
 *
 * An attempt takes a slot. It begins in a quick one, unless its webhook is known to be slow (its last
 * attempt took long): then it has a slow one, of which there are few, until its end. An
 * attempt that has not ended after a moment lingers, and makes its quick slot free: so targets that
 * begin to hang, hundreds at once, hold up the others for that moment and not until the time-out. Those
 * that linger have a bound of their own, which takes nothing from the quick slots; beyond it an attempt
 * keeps the slot in which it began. To an organization they count as quick ones do, so that a few of
 * them cannot reach that bound.
 *
 * A webhook that is slow, or has a lingering attempt, gets no second attempt beside the one that is
 * under way. The others get their slots dealt in turns; those with the fewest attempts under way are
 * first, and among them the one that has been waiting longest.
 */
export type Lane = {
  webhookId: string;
  organizationId: string;
  /** Its target's last attempt took long. */
  slow: boolean;
  /** Not positive when something is due. */
  dueInMs: number;
};

/** What an attempt that is under way takes. */
export type Slot = {
  webhookId: string;
  organizationId: string;
  kind: "quick" | "lingering" | "slow";
};

export type Bounds = {
  /** In the whole process, and of one organization with those of its attempts that linger. */
  quick: { process: number; organization: number };
  /** In the whole process, and of one organization. */
  slow: { process: number; organization: number };
  /** In the whole process. */
  lingering: number;
  /** Of one webhook. */
  webhook: number;
};

/** Of 256 slots a quarter is for slow webhooks. */
export const defaultBounds: Bounds = {
  quick: { process: 192, organization: 64 },
  slow: { process: 64, organization: 16 },
  // With the others a thousand sockets and payloads, some megabytes. Twelve organizations' all.
  lingering: 768,
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
  return [false, true]
    .filter((slow) => roomInProcess(usage, bounds, slow) > 0)
    .map((slow) => ({
      slow,
      limit: lanesPerSearch,
      exceptWebhooks: [...usage.webhooks.keys()].filter(
        (id) => roomOfWebhook(usage, bounds, id, slow) <= 0,
      ),
      exceptOrganizations: [...usage.organizations.keys()].filter(
        (id) => roomOfOrganization(usage, bounds, id, slow) <= 0,
      ),
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
      if (roomOf(usage, bounds, lane) <= 0) return false;
      planned.set(lane.webhookId, (planned.get(lane.webhookId) ?? 0) + 1);
      take(usage, { ...lane, kind: kindOf(lane.slow) });
      return true;
    });
  return [...planned].map(([webhookId, atMost]) => ({ webhookId, atMost }));
}

/** Whether an attempt that takes longer than a moment makes its quick slot free. */
export const mayLinger = (slots: readonly Slot[], bounds: Bounds): boolean =>
  slots.filter(({ kind }) => kind === "lingering").length < bounds.lingering;

type Count = Record<Slot["kind"], number>;
type Usage = { process: Count; organizations: Map<string, Count>; webhooks: Map<string, Count> };

const none: Count = { quick: 0, lingering: 0, slow: 0 };
const total = ({ quick, lingering, slow }: Count) => quick + lingering + slow;
/** The kind of slot in which an attempt begins. */
const kindOf = (slow: boolean) => (slow ? "slow" : "quick");

function countUsage(slots: readonly Slot[]): Usage {
  const usage: Usage = {
    process: { ...none },
    organizations: new Map(),
    webhooks: new Map(),
  };
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

const roomOf = (usage: Usage, bounds: Bounds, { webhookId, organizationId, slow }: Lane) =>
  Math.min(
    roomInProcess(usage, bounds, slow),
    roomOfOrganization(usage, bounds, organizationId, slow),
    roomOfWebhook(usage, bounds, webhookId, slow),
  );

function roomInProcess({ process }: Usage, bounds: Bounds, slow: boolean): number {
  const kind = kindOf(slow);
  return bounds[kind].process - process[kind];
}

function roomOfOrganization(usage: Usage, bounds: Bounds, id: string, slow: boolean): number {
  const kind = kindOf(slow);
  const count = usage.organizations.get(id) ?? none;
  const taken = slow ? count.slow : count.quick + count.lingering;
  return bounds[kind].organization - taken;
}

function roomOfWebhook(usage: Usage, bounds: Bounds, id: string, slow: boolean): number {
  const count = usage.webhooks.get(id) ?? none;
  const oneAtATime = slow || count.lingering > 0;
  return (oneAtATime ? 1 : bounds.webhook) - total(count);
}

import { leaseKey } from "@halyard/contracts";
import type { EdgeEntryOptions, OwnEntry } from "./edge-entries.ts";
import type { Leases, OrganizationCounts } from "./leases.ts";
import type { SlotMetrics } from "./slot-metrics.ts";
import { type Decided, decideClaim, noSlotFree, slotsUnknown } from "./stream-slots.ts";

export type SlotOptions = EdgeEntryOptions & {
  /** Maximum number of open streams of an organization; null: unlimited. */
  limitOf: (organizationId: string) => number | null;
  random: () => number;
  metrics: SlotMetrics;
};

export type SlotParts = SlotOptions & { leases: Leases; own: OwnEntry };

export type Organization = ReturnType<typeof createOrganization>;

type Waiter = { decided: Decided; untilMs: number };

/** Rest after a write. It gives other edges a turn, and collects the requests for one write. */
const leastRestMs = 8;
const longestRestMs = 100;

const noCounts: OrganizationCounts = { revision: 0, holders: {} };

/** The streams of one organization on this edge. */
export function createOrganization(id: string, parts: SlotParts) {
  const { edgeId, leases, own, clock, metrics } = parts;
  const waiting = new Set<Waiter>();
  let open = 0;
  let failures = 0;
  let isSettling = false;
  const limitOf = () => parts.limitOf(id);
  const entry = () => leases.content.organizations.get(id) ?? noCounts;
  /** This edge's count in the organization's entry. */
  const held = () => entry().holders[edgeId] ?? 0;

  /** Admits the first of the requests that still wait and rejects the others. */
  function answer(asked: readonly Waiter[], granted: number, limit: number | null): void {
    let left = granted;
    for (const waiter of asked) {
      if (!waiting.delete(waiter)) continue;
      left -= 1;
      if (left >= 0) open += 1;
      else metrics.refused.inc({ reason: limit === null ? "unknown" : "limit" });
      waiter.decided(left >= 0 ? undefined : limit === null ? slotsUnknown : noSlotFree(limit));
    }
  }

  /** Admits, rejects and writes until nothing is left to do or NATS is needed and unavailable. */
  async function settle(): Promise<void> {
    isSettling = true;
    while (await settleOnce()) {
      // Without a limit, one write for each check is enough.
      const mustWrite = held() !== open && (limitOf() !== null || failures > 0);
      if (waiting.size === 0 && !mustWrite) break;
    }
    isSettling = false;
  }

  /** Returns true while the organization is being settled. */
  function settleIfNeeded(): boolean {
    if (!isSettling && (waiting.size > 0 || held() !== open)) void settle();
    return isSettling;
  }

  /**
   * Streams of a limited plan are admitted only by a write that adds to this edge's count: one for all that
   * wait, over the revision received last. If another edge wrote first, the write fails and is decided
   * again. Returns false when NATS is needed and unavailable.
   */
  async function settleOnce(): Promise<boolean> {
    const { content } = leases;
    const limit = limitOf();
    const isNew = own.isBucketNew();
    const nowMs = clock.monotonicMs();
    const late = [...waiting].filter(({ untilMs }) => isNew || untilMs <= nowMs);
    answer(late, 0, null);
    const isAway = own.isAway();
    const { holders, revision } = entry();
    if (!isAway && !own.isCounted()) return false;

    const asked = [...waiting];
    const isEnded = (other: string) => content.edges.get(other)?.isEnded === true;
    const claim = { holders, edgeId, isEnded, open, waiting: asked.length, limit };
    const { granted, holders: claimed } = decideClaim(claim);
    if (isAway || granted === 0) answer(asked, granted, limit);
    if (isAway || (granted === 0 && held() === open)) return !isAway;
    const outcome = await leases.write(leaseKey.organization(id), { holders: claimed }, revision);
    // The acknowledgement may be old: the process was suspended, the bucket replaced or the limit changed.
    const isValid = own.isCounted() && leases.content === content && limitOf() === limit;
    if (outcome === "written" && isValid) answer(asked, granted, limit);
    if (outcome === "conflict") metrics.retried.inc();
    failures = outcome === "written" ? 0 : failures + 1;
    const restMs = parts.random() * Math.min(leastRestMs * 2 ** failures, longestRestMs);
    await new Promise<void>((resolve) => void clock.after(restMs, resolve));
    return true;
  }

  return {
    settle: settleIfNeeded,
    held,
    waiting: () => waiting.size,
    take(decided: Decided) {
      const waiter = { decided, untilMs: clock.monotonicMs() + parts.times.patienceMs };
      waiting.add(waiter);
      if (limitOf() === null) answer([waiter], 1, null);
      else settleIfNeeded();
    },
    release() {
      open -= 1;
      // The counts of organizations without a limit are for reports. The next check writes them.
      if (limitOf() !== null) settleIfNeeded();
    },
  };
}

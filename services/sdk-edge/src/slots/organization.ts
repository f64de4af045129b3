import { leaseKey } from "@halyard/contracts";
import type { EdgeEntryOptions, OwnEntry } from "./edge-entries.ts";
import type { Leases, OrganizationCounts } from "./leases.ts";
import type { SlotMetrics } from "./slot-metrics.ts";
import {
  type Decided,
  decideClaim,
  slotCountsUnavailable,
  streamLimitReached,
} from "./stream-slots.ts";

export type SlotOptions = EdgeEntryOptions & {
  /** Maximum number of open streams of an organization; null: unlimited. */
  limitOf: (organizationId: string) => number | null;
  random: () => number;
  metrics: SlotMetrics;
};

export type SlotParts = SlotOptions & { leases: Leases; own: OwnEntry };

export type Organization = ReturnType<typeof createOrganization>;

type Waiter = { decided: Decided; untilMs: number };

/** Backoff after a write. It lets other edges write, and collects requests for the next write. */
const initialBackoffMs = 8;
const maxBackoffMs = 100;

const noCounts: OrganizationCounts = { revision: 0, holders: {} };

/** The open streams of one organization on this edge, and the requests for more. */
type OrganizationStreams = {
  /** Requests that wait for a slot. */
  readonly waiting: Set<Waiter>;
  open: number;
  /** Writes in a row that were not acknowledged. */
  failures: number;
};

/** The streams of one organization on this edge. */
export function createOrganization(id: string, parts: SlotParts) {
  const { clock, metrics } = parts;
  const streams: OrganizationStreams = { waiting: new Set(), open: 0, failures: 0 };
  const { waiting } = streams;
  let isSettling = false;
  const limitOf = () => parts.limitOf(id);
  const held = () => heldOf(id, parts);

  /** Admits, rejects and writes until nothing is left to do or NATS is needed and unavailable. */
  async function settle(): Promise<void> {
    isSettling = true;
    while (await settleOnce(id, streams, parts)) {
      // Without a limit, one write for each check is enough.
      const mustWrite = held() !== streams.open && (limitOf() !== null || streams.failures > 0);
      if (waiting.size === 0 && !mustWrite) break;
    }
    isSettling = false;
  }

  /** Returns true while the organization is being settled. */
  function settleIfNeeded(): boolean {
    if (!isSettling && (waiting.size > 0 || held() !== streams.open)) void settle();
    return isSettling;
  }

  return {
    settle: settleIfNeeded,
    held,
    waiting: () => waiting.size,
    take(decided: Decided) {
      const waiter = { decided, untilMs: clock.monotonicMs() + parts.times.timeoutMs };
      waiting.add(waiter);
      if (limitOf() === null) answer(streams, [waiter], { granted: 1, limit: null, metrics });
      else settleIfNeeded();
    },
    release() {
      streams.open -= 1;
      // The counts of organizations without a limit are only for reports, so the next check writes them.
      if (limitOf() !== null) settleIfNeeded();
    },
  };
}

function entryOf(id: string, { leases }: SlotParts): OrganizationCounts {
  return leases.content.organizations.get(id) ?? noCounts;
}

/** This edge's count in the organization's entry. */
function heldOf(id: string, parts: SlotParts): number {
  return entryOf(id, parts).holders[parts.edgeId] ?? 0;
}

/** Admits the first of the requests that still wait and rejects the others. */
function answer(
  streams: OrganizationStreams,
  asked: readonly Waiter[],
  { granted, limit, metrics }: { granted: number; limit: number | null; metrics: SlotMetrics },
): void {
  let left = granted;
  for (const waiter of asked) {
    if (!streams.waiting.delete(waiter)) continue;
    left -= 1;
    if (left >= 0) streams.open += 1;
    else metrics.rejected.inc({ reason: limit === null ? "unknown" : "limit" });
    waiter.decided(
      left >= 0 ? undefined : limit === null ? slotCountsUnavailable : streamLimitReached(limit),
    );
  }
}

/**
 * Admits streams of a limited plan only by a write that adds to this edge's count. One write covers all waiting
 * requests, over the revision received last. If another edge wrote first, the write fails and is decided again. Returns
 * false when NATS is needed and unavailable.
 */
async function settleOnce(
  id: string,
  streams: OrganizationStreams,
  parts: SlotParts,
): Promise<boolean> {
  const { edgeId, leases, own, clock, metrics } = parts;
  const { content } = leases;
  const limit = parts.limitOf(id);
  const isNew = own.isBucketNew();
  const nowMs = clock.monotonicMs();
  const late = [...streams.waiting].filter(({ untilMs }) => isNew || untilMs <= nowMs);
  answer(streams, late, { granted: 0, limit: null, metrics });
  const isUnavailable = own.isUnavailable();
  const { holders, revision } = entryOf(id, parts);
  if (!isUnavailable && !own.isCounted()) return false;

  const asked = [...streams.waiting];
  const isEnded = (other: string) => content.edges.get(other)?.isEnded === true;
  const { open } = streams;
  const claim = { holders, edgeId, isEnded, open, waiting: asked.length, limit };
  const { granted, holders: claimed } = decideClaim(claim);
  if (isUnavailable || granted === 0) answer(streams, asked, { granted, limit, metrics });
  if (isUnavailable || (granted === 0 && heldOf(id, parts) === streams.open)) return !isUnavailable;
  const outcome = await leases.write(leaseKey.organization(id), { holders: claimed }, revision);
  // The acknowledgement may be old: the process was suspended, the bucket replaced or the limit changed.
  const isValid = own.isCounted() && leases.content === content && parts.limitOf(id) === limit;
  if (outcome === "written" && isValid) answer(streams, asked, { granted, limit, metrics });
  if (outcome === "conflict") metrics.retried.inc();
  streams.failures = outcome === "written" ? 0 : streams.failures + 1;
  const backoffMs =
    parts.random() * Math.min(initialBackoffMs * 2 ** streams.failures, maxBackoffMs);
  await new Promise<void>((resolve) => void clock.after(backoffMs, resolve));
  return true;
}

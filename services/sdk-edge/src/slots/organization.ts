import { leaseKey } from "@halyard/contracts";
import { type Clock, rest } from "./clock.ts";
import { decideClaim } from "./decide-claim.ts";
import type { FollowedContent } from "./lease-content.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { OwnEntry } from "./own-entry.ts";
import { noSlotFree, slotsUnknown } from "./slot-refusals.ts";
import type { SlotTimes } from "./slot-times.ts";
import type { Decided } from "./stream-slots.ts";

/** The streams of one organization on this edge. */
export type Organization = {
  readonly id: string;
  open: number;
  readonly waiting: Set<Waiter>;
  writtenMs: number;
  failures: number;
  isSettling: boolean;
};

export type Waiter = { decided: Decided; untilMs: number };

export type SlotParts = {
  edgeId: string;
  store: LeaseStore;
  bucket: FollowedContent;
  own: Pick<OwnEntry, "isCounted" | "isBucketNew">;
  /** True while NATS is unavailable, so that streams are admitted against the last counts. */
  isAway: () => boolean;
  clock: Clock;
  times: SlotTimes;
  /** Maximum number of open streams of an organization; null: unlimited. */
  limitOf: (organizationId: string) => number | null;
  random: () => number;
  counts: { refusedByLimit: number; refusedUnknown: number; claimsRetried: number };
};

/** Each of fifty edges that write at the same time succeeds in less. */
const longestRestMs = 250;

export function takeSlotOf(organization: Organization, decided: Decided, parts: SlotParts): void {
  const waiter = { decided, untilMs: parts.clock.elapsed() + parts.times.patienceMs };
  organization.waiting.add(waiter);
  if (parts.limitOf(organization.id) === null)
    answer(organization, [waiter], { granted: 1 }, parts);
  else void settle(organization, parts);
}

/** This edge's count in the organization's entry. */
export function heldBy({ id }: Organization, { bucket, edgeId }: SlotParts): number {
  return bucket.content.organizations.get(id)?.holders?.[edgeId] ?? 0;
}

/** Refuses the requests that have waited for too long. */
export function refuseImpatient(organization: Organization, parts: SlotParts): void {
  const nowMs = parts.clock.elapsed();
  const asked = [...organization.waiting].filter(({ untilMs }) => untilMs <= nowMs);
  answer(organization, asked, { granted: 0 }, parts);
}

/**
 * Admits, refuses and writes until nothing is left to do or NATS is needed and unavailable. Streams of a
 * limited plan are admitted only by a write that adds to this edge's count: one for all that wait, over
 * the revision received last. If another edge wrote first, the write fails and is decided again.
 */
export async function settle(organization: Organization, parts: SlotParts): Promise<void> {
  if (organization.isSettling) return;
  organization.isSettling = true;
  while (
    (organization.waiting.size > 0 || mustWrite(organization, parts)) &&
    (await settleOnce(organization, parts))
  );
  organization.isSettling = false;
}

function mustWrite(organization: Organization, parts: SlotParts): boolean {
  const { id, open, writtenMs } = organization;
  const dueMs = parts.limitOf(id) === null ? writtenMs + parts.times.writeUnlimitedEveryMs : 0;
  return heldBy(organization, parts) !== open && parts.clock.elapsed() >= dueMs;
}

/** Returns false when NATS is needed and unavailable. */
async function settleOnce(organization: Organization, parts: SlotParts): Promise<boolean> {
  const { edgeId, own, bucket } = parts;
  const { id, open, waiting } = organization;
  const { content } = bucket;
  const limit = parts.limitOf(id);
  if (own.isBucketNew()) answer(organization, [...waiting], { granted: 0 }, parts);
  const isAway = parts.isAway();
  const { holders, revision } = content.organizations.get(id) ?? { holders: {}, revision: 0 };
  if (holders === undefined || !(isAway || own.isCounted())) return false;

  const asked = [...waiting];
  const isEnded = (other: string) => content.edges.get(other)?.isEnded === true;
  const claim = { holders, edgeId, isEnded, open, waiting: asked.length, limit };
  const decision = decideClaim(claim);
  const { granted } = decision;
  if (isAway || granted === 0) answer(organization, asked, { granted, limit }, parts);
  if (isAway || (granted === 0 && !mustWrite(organization, parts))) return !isAway;
  if (!(await write(organization, { holders: decision.holders }, revision, parts))) return true;
  // The acknowledgement may be old: the process was suspended, the bucket replaced or the limit changed.
  if (own.isCounted() && bucket.content === content && parts.limitOf(id) === limit)
    answer(organization, asked, { granted, limit }, parts);
  return true;
}

async function write(
  organization: Organization,
  value: { holders: Record<string, number> },
  over: number,
  { store, bucket, clock, counts, random }: SlotParts,
): Promise<boolean> {
  const key = leaseKey.organization(organization.id);
  const { content } = bucket;
  const written = await store.write(key, value, over);
  if (written.outcome === "written") {
    content.apply(key, { value, revision: written.revision });
    organization.failures = 0;
    organization.writtenMs = clock.elapsed();
    return true;
  }
  organization.failures += 1;
  if (written.outcome === "conflict") counts.claimsRetried += 1;
  await rest(clock, random() * Math.min(2 ** organization.failures, longestRestMs));
  return false;
}

/** Admits the first of the requests that still wait and refuses the others. */
function answer(
  organization: Organization,
  asked: readonly Waiter[],
  { granted, limit = null }: { granted: number; limit?: number | null },
  { counts }: SlotParts,
): void {
  let left = granted;
  for (const waiter of asked) {
    if (!organization.waiting.delete(waiter)) continue;
    left -= 1;
    if (left >= 0) {
      organization.open += 1;
      waiter.decided(undefined);
    } else {
      if (limit === null) counts.refusedUnknown += 1;
      else counts.refusedByLimit += 1;
      waiter.decided(limit === null ? slotsUnknown : noSlotFree(limit));
    }
  }
}

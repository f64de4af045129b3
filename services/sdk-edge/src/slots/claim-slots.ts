import { type Clock, rest } from "./clock.ts";
import { type ClaimDecision, decideClaim } from "./decide-claim.ts";
import type { KnownLeases } from "./known-leases.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { OrganizationEntry } from "./organization-entry.ts";
import type { ClaimedFor, OrganizationSlots, SlotCounts } from "./organization-slots.ts";
import { endStrangers } from "./strangers.ts";

/**
 * Claims slots for one organization, in one go for all who wait, by writing over the entry as it was
 * read. When another edge has written meanwhile, the write has no effect, and the claim is decided anew.
 *
 * When nobody answers, the write may have had its effect or may have it yet, but only over the revision
 * that it named. So it is not until a later write has succeeded that what stands there is known.
 */
export type ClaimParts = {
  store: LeaseStore;
  known: KnownLeases;
  /** The id of this edge's lease while it is good. */
  leaseId: () => string | undefined;
  clock: Clock;
  random: () => number;
  counts: SlotCounts;
};

type Subject = { slots: OrganizationSlots; entry: OrganizationEntry };

/**
 * Claims until there is nothing to claim for. While there is no lease, or NATS is away, it gives up:
 * whoever ends that state has all organizations claim again.
 */
export async function claimSlots(subject: Subject, parts: ClaimParts): Promise<void> {
  let failures = 0;
  while (subject.slots.hasClaim) {
    const leaseId = parts.leaseId();
    if (leaseId === undefined || !canClaim(parts)) return;
    const isSettled = await claimOnce(subject, leaseId, parts);
    failures = isSettled ? 0 : failures + 1;
    if (!isSettled) await rest(parts.clock, restAfter(failures, parts.random));
  }
}

export function canClaim({ store, leaseId }: ClaimParts): boolean {
  return store.isCurrent() && leaseId() !== undefined;
}

/** Random, so that edges that were in each other's way are not again. */
function restAfter(failures: number, random: () => number): number {
  return random() * Math.min(2 ** failures, longestRestMs);
}

/** Of fifty edges that claim at once each has its turn in less time. */
const longestRestMs = 250;

/** Answers whether what this edge holds is settled, or was lost with its lease. */
async function claimOnce(subject: Subject, leaseId: string, parts: ClaimParts): Promise<boolean> {
  const { slots, entry } = subject;
  const wasDoubted = slots.written.takeDoubt();
  if (wasDoubted) entry.forget();
  const isFresh = !entry.isKnown;
  const holders = await entry.holders();
  if (holders === undefined) {
    if (wasDoubted) slots.written.doubt();
    return false;
  }
  const others = Object.keys(holders).filter((holder) => holder !== leaseId);
  await endStrangers(others, parts);
  if (parts.leaseId() !== leaseId) return true;

  const claimedFor = slots.beginClaim();
  const { isEnded } = parts.known;
  const decision = decideClaim({ ...claimedFor, holders, leaseId, isEnded });
  if (isWritten(decision, holders[leaseId], slots)) {
    if (isFresh || claimedFor.waiting === 0) {
      slots.leave(claimedFor);
      return true;
    }
    // Somebody may have given a slot back since this was read.
    entry.forget();
    return claimOnce(subject, leaseId, parts);
  }
  return write({ ...decision, claimedFor, leaseId }, subject, parts);
}

/**
 * Whether there is nothing to write. What was read may be older than what was told, so both must say so;
 * and nothing is granted by what was read: only a write that succeeds shows that it still stands.
 */
function isWritten(
  decision: ClaimDecision,
  read: number | undefined,
  { written }: OrganizationSlots,
): boolean {
  const { slots, granted } = decision;
  return granted === 0 && slots === written.told && slots === (read ?? 0);
}

type Decided = ClaimDecision & { claimedFor: ClaimedFor; leaseId: string };

async function write(decided: Decided, subject: Subject, parts: ClaimParts): Promise<boolean> {
  const { slots, entry } = subject;
  slots.written.keepAtMost(decided.slots);
  const { outcome } = await entry.write(decided.holders);
  // Under another lease nothing of this counts, and what is settled there must stay.
  if (parts.leaseId() !== decided.leaseId) return true;
  if (outcome === "written") slots.settle(decided, decided.claimedFor);
  if (outcome === "unknown") slots.written.unsettle();
  if (outcome === "conflict") {
    parts.counts.claimsRetried += 1;
    slots.written.doubt();
  }
  return outcome === "written";
}

import type { Clock } from "./clock.ts";
import type { ClaimDecision } from "./decide-claim.ts";
import { createFullMemory } from "./full-memory.ts";
import { createReminder } from "./reminder.ts";
import { noSlotFree, slotsUnknown } from "./slot-refusals.ts";
import type { SlotTimes } from "./slot-times.ts";
import { createWaitingTakers, type Decided } from "./waiting-takers.ts";
import { createWrittenSlots, type WrittenSlots } from "./written-slots.ts";

/**
 * The slots of one organization on this edge. As many as are written down for this edge's lease may be
 * used without asking anybody. Where that does not suffice, or is more than needed, somebody has to
 * claim, and hands the outcome to `settle`. Here is no I/O: a claim may be under way all the time that
 * slots are taken and given back.
 */
export type OrganizationSlots = {
  take(decided: Decided): void;
  release(): void;
  /** The lease is over. What is open is closed by others, and counts until it is. */
  lose(): void;
  /** Whether there is a reason to claim. */
  readonly hasClaim: boolean;
  /** What there is to claim for, from this moment on also for all who wait now. */
  beginClaim(): ClaimedFor;
  /** What was decided was written down. */
  settle(decision: ClaimDecision, claimedFor: ClaimedFor): void;
  /** There was nothing to write down, and nobody is granted anything. */
  leave(claimedFor: ClaimedFor): void;
  /** The limit is another one. */
  limitChanged(): void;
  readonly written: WrittenSlots;
  readonly waiting: number;
  /** Whether there is nothing to remember. */
  readonly isIdle: boolean;
};

export type ClaimedFor = {
  open: number;
  waiting: number;
  limit: number | null;
  /** How often the limit had changed. */
  limitChanges: number;
};

export type SlotCounts = {
  refusedByLimit: number;
  refusedUnknown: number;
  leasesLost: number;
  claimsRetried: number;
};

export function createOrganizationSlots(options: {
  clock: Clock;
  times: SlotTimes;
  /** null: as many streams as one likes. */
  limit: () => number | null;
  isLeaseGood: () => boolean;
  /** Nobody can be asked, and has not been for a while. */
  isAway: () => boolean;
  /** There may be a reason to claim. */
  onClaim: () => void;
  counts: SlotCounts;
}): OrganizationSlots {
  const { clock, times, limit, counts } = options;
  const written = createWrittenSlots();
  const full = createFullMemory(clock, times.fullForMs);
  const telling = createReminder({
    clock,
    delayMs: () => (limit() === null ? times.tellUnlimitedAfterMs : times.keepFreeForMs),
    onDue: options.onClaim,
  });
  const waiting = createWaitingTakers({ clock, patienceMs: times.patienceMs, onImpatient });
  let open = 0;
  let limitChanges = 0;

  function onImpatient(decided: Decided): void {
    counts.refusedUnknown += 1;
    decided(slotsUnknown);
  }

  function mayOpen(allowed: number | null): boolean {
    return allowed === null || (written.hasFree(open) && options.isLeaseGood());
  }

  function give(decided: Decided): void {
    open += 1;
    if (open !== written.told) telling.plan();
    decided(undefined);
  }

  const isOutdated = (claimedFor: ClaimedFor) => claimedFor.limitChanges !== limitChanges;

  /** Under another limit than that which was claimed under, those who wait are claimed for again. */
  function refuseAsked(claimedFor: ClaimedFor): void {
    const allowed = claimedFor.limit;
    if (allowed === null || isOutdated(claimedFor)) return;
    const refused = waiting.refuseAsked(noSlotFree(allowed));
    counts.refusedByLimit += refused;
    if (refused > 0) full.note(allowed);
  }

  return {
    take(decided) {
      const allowed = limit();
      if (mayOpen(allowed)) {
        give(decided);
      } else if (allowed !== null && full.isFull(allowed)) {
        counts.refusedByLimit += 1;
        decided(noSlotFree(allowed));
      } else if (options.isAway()) {
        onImpatient(decided);
      } else {
        waiting.add(decided);
        options.onClaim();
      }
    },
    release() {
      open -= 1;
      full.clear();
      telling.plan();
    },
    lose() {
      written.clear();
      telling.make();
    },
    get hasClaim() {
      if (waiting.size > 0 || written.isUnsure) return true;
      return telling.isDue && written.told !== open;
    },
    beginClaim() {
      waiting.noteAsked();
      return { open, waiting: waiting.size, limit: limit(), limitChanges };
    },
    settle({ slots, isWithinLimit }, claimedFor) {
      written.settle(slots);
      telling.clear();
      if (isOutdated(claimedFor) || !isWithinLimit) written.distrust();
      const allowed = limit();
      while (waiting.size > 0 && mayOpen(allowed)) give(waiting.next() as Decided);
      refuseAsked(claimedFor);
      // What is not needed is given back, and what there is nothing more to know of is forgotten.
      if (slots !== open || open === 0) telling.plan();
    },
    leave(claimedFor) {
      telling.clear();
      refuseAsked(claimedFor);
      if (written.told !== open || open === 0) telling.plan();
    },
    limitChanged() {
      limitChanges += 1;
      written.distrust();
    },
    written,
    get waiting() {
      return waiting.size;
    },
    get isIdle() {
      return open === 0 && written.told === 0 && waiting.size === 0 && !telling.isPlanned;
    },
  };
}

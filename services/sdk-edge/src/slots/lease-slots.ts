import { leaseKey } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import type { Clock } from "./clock.ts";
import { createKnownLeases } from "./known-leases.ts";
import { stateOf } from "./lease-entry.ts";
import type { LeaseStore } from "./lease-store.ts";
import type { SlotCounts } from "./organization-slots.ts";
import { createOrganizations } from "./organizations.ts";
import { createOwnLease } from "./own-lease.ts";
import type { SlotTimes } from "./slot-times.ts";
import type { StreamSlots } from "./stream-slots.ts";
import { watchLeases } from "./watch-leases.ts";

/**
 * Slots for streams, exact over all edges: this edge's lease, what it knows of the others', and for each
 * organization that has streams here, what is held and claimed under the lease.
 *
 * Why there is never one too many: an edge opens no more streams than are written down for its lease,
 * what is written down never exceeds the limit, because each write names the revision over which it was
 * decided, and what is written down for a lease is taken away only when the lease has ended, which it
 * does after its edge has closed its streams.
 */
export type LeaseSlots = StreamSlots & {
  /** `limitOf` has another answer for an organization. */
  limitChanged(organizationId: string): void;
  figures(): SlotFigures;
  /** Gives up the lease, once the streams are closed. */
  stop(): Promise<void>;
};

export type SlotFigures = SlotCounts & { hasLease: boolean; held: number; waiting: number };

export type LeaseSlotsOptions = {
  store: LeaseStore;
  clock: Clock;
  times: SlotTimes;
  /** How many streams an organization may have open; null: as many as it likes. */
  limitOf: (organizationId: string) => number | null;
  newId: () => string;
  random: () => number;
  logger: Logger;
};

export function createLeaseSlots(options: LeaseSlotsOptions): LeaseSlots {
  const { store, times, limitOf } = options;
  const counts: SlotCounts = {
    refusedByLimit: 0,
    refusedUnknown: 0,
    leasesLost: 0,
    claimsRetried: 0,
  };
  const known = createKnownLeases(times);
  let close: Parameters<StreamSlots["onLost"]>[0] = () => undefined;

  const lease = createOwnLease({
    ...options,
    onTaken: () => organizations.claimAll(),
    onOver() {
      counts.leasesLost += 1;
      organizations.loseAll();
      close((organizationId) => limitOf(organizationId) !== null);
    },
  });
  const watch = watchLeases({ ...options, known });
  const { isAway } = watch;
  const { goodId: leaseId } = lease;
  const organizations = createOrganizations({ ...options, known, leaseId, counts, isAway });
  store.follow({
    onBegin: known.begin,
    onEntry(heardId, entry) {
      known.hear(heardId, { revision: entry.revision, isEnded: stateOf(entry) === "ended" });
      lease.hear(heardId, entry);
    },
    onCaughtUp() {
      lease.hurry();
      organizations.doubtAll();
      organizations.claimAll();
      void lookForOwnLease();
      void watch.forgetLongEnded();
    },
  });

  /** The bucket may be another one, made anew, or may have lost what was written last. */
  async function lookForOwnLease(): Promise<void> {
    const ownId = lease.goodId();
    if (ownId === undefined || known.isKnown(ownId)) return;
    const found = await store.read(leaseKey.edge(ownId));
    if (found.outcome === "read") lease.hear(ownId, found.entry);
  }

  return {
    take: (organizationId, decided) => organizations.of(organizationId).take(decided),
    release: (organizationId) => organizations.of(organizationId).release(),
    get losses() {
      return counts.leasesLost;
    },
    onLost(closeThose) {
      close = closeThose;
    },
    limitChanged: organizations.limitChanged,
    figures: () => ({
      ...counts,
      ...organizations.figures(),
      hasLease: lease.goodId() !== undefined,
    }),
    async stop() {
      watch.stop();
      await lease.stop();
    },
  };
}

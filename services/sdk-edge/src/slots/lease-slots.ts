import type { Logger } from "@halyard/service";
import { followContent } from "./lease-content.ts";
import {
  heldBy,
  type Organization,
  refuseImpatient,
  type SlotParts,
  settle,
  takeSlotOf,
} from "./organization.ts";
import { createOwnEntry } from "./own-entry.ts";
import { endSilentEdges, forgetLongEnded } from "./silent-edges.ts";
import type { StreamSlots } from "./stream-slots.ts";

/** Slots for streams, counted over all edges in the bucket LEASES. No open stream is ever closed. */
export type LeaseSlots = StreamSlots & {
  figures(): SlotFigures;
  /** Ends this edge's entry. To be called after the streams were closed. */
  stop(): Promise<void>;
};

export type SlotFigures = SlotParts["counts"] & {
  isCounted: boolean;
  held: number;
  waiting: number;
};

/** Maximum number of organizations whose counts are written at the same time in the background. */
const mostLanes = 20;

export function createLeaseSlots(
  options: Omit<SlotParts, "bucket" | "own" | "isAway" | "counts"> & { logger: Logger },
): LeaseSlots {
  const { store, clock, times, edgeId } = options;
  const counts = { refusedByLimit: 0, refusedUnknown: 0, claimsRetried: 0 };
  const organizations = new Map<string, Organization>();
  let checkedMs = clock.elapsed();
  let disconnectedMs: number | undefined;
  let isSettling = false;
  let callOff = () => {};

  const bucket = followContent({
    logger: options.logger,
    onCaughtUp() {
      own.caughtUp();
      check();
      void forgetLongEnded({ content: bucket.content, store });
    },
  });
  const own = createOwnEntry({ ...options, bucket });
  const parts: SlotParts = { ...options, bucket, own, isAway, counts };

  function isAway(): boolean {
    if (store.isConnected()) disconnectedMs = undefined;
    else disconnectedMs ??= clock.elapsed();
    const awayMs = clock.elapsed() - (disconnectedMs ?? clock.elapsed());
    return awayMs >= times.awayAfterMs || own.isUnanswered();
  }

  function check(): void {
    callOff();
    callOff = clock.after(times.checkEveryMs, check);
    // A process that was suspended has not watched the other edges meanwhile.
    const forMs = Math.min(clock.elapsed() - checkedMs, 2 * times.checkEveryMs);
    checkedMs = clock.elapsed();
    const watched = { edgeId, forMs, endAfterMs: times.endAfterMs };
    if (store.isCurrent()) endSilentEdges(watched, { ...options, content: bucket.content });
    own.check();
    isAway();
    for (const organization of organizations.values()) refuseImpatient(organization, parts);
    void settleAll();
  }

  async function settleAll(): Promise<void> {
    if (isSettling) return;
    isSettling = true;
    const all = organizations.values();
    const lane = async () => {
      for (let next = all.next(); !next.done; next = all.next()) await settle(next.value, parts);
    };
    await Promise.all(Array.from({ length: mostLanes }, lane));
    isSettling = false;
  }

  function of(id: string): Organization {
    const known = organizations.get(id) ?? createOrganization(id);
    organizations.set(id, known);
    return known;
  }

  store.follow(bucket.follower);
  check();
  return {
    take: (organizationId, decided) => takeSlotOf(of(organizationId), decided, parts),
    release(organizationId) {
      of(organizationId).open -= 1;
    },
    figures() {
      const all = [...organizations.values()];
      const sum = (read: (one: Organization) => number) =>
        all.reduce((total, one) => total + read(one), 0);
      const held = sum((one) => heldBy(one, parts));
      return {
        ...counts,
        held,
        waiting: sum((one) => one.waiting.size),
        isCounted: own.isCounted(),
      };
    },
    async stop() {
      callOff();
      await own.stop();
    },
  };
}

function createOrganization(id: string): Organization {
  const counters = { open: 0, failures: 0, writtenMs: Number.NEGATIVE_INFINITY };
  return { id, ...counters, waiting: new Set(), isSettling: false };
}

import { randomUUID } from "node:crypto";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";
import { isDeleted } from "../snapshot/snapshot.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { type Clock, processClock, type SlotTimes, slotTimes } from "./clock.ts";
import { createOwnEntry, watchOthers } from "./edge-entries.ts";
import { createNatsLeaseStore } from "./lease-store.ts";
import { followLeases } from "./leases.ts";
import {
  createOrganization,
  type Organization,
  type SlotOptions,
  type SlotParts,
} from "./organization.ts";
import { createSlotMetrics } from "./slot-metrics.ts";
import type { StreamSlots } from "./stream-slots.ts";

/** Slots for streams, counted over all edges in the bucket LEASES. No open stream is ever closed. */
export type LeaseSlots = StreamSlots & {
  /** Stops the counting. Must be called after the streams have closed and before the connection does. */
  stop(): Promise<void>;
};

/**
 * Maximum number of organizations whose counts one check writes. A NATS server handles these writes in a few
 * milliseconds.
 */
const maxSettling = 2_000;

export function createLeaseSlots(options: SlotOptions): LeaseSlots {
  const { store, clock, times, metrics } = options;
  const organizations = new Map<string, Organization>();
  let checkedMs = clock.monotonicMs();
  let callOff = () => {};
  const leases = followLeases(store, {
    logger: options.logger,
    onCaughtUp() {
      own.caughtUp();
      check();
    },
  });
  const own = createOwnEntry(options, leases);
  const parts: SlotParts = { ...options, leases, own };

  function check(): void {
    callOff();
    callOff = clock.after(times.checkIntervalMs, check);
    // A process that was suspended has not watched the other edges meanwhile.
    const forMs = Math.min(clock.monotonicMs() - checkedMs, 2 * times.checkIntervalMs);
    checkedMs = clock.monotonicMs();
    if (store.isCurrent()) watchOthers(forMs, options, leases);
    own.check();
    const all = [...organizations.values()];
    let free = maxSettling;
    for (const { settle } of all) if (free > 0 && settle()) free -= 1;
    metrics.lease.set(own.isCounted() ? 1 : 0);
    metrics.held.set(all.reduce((sum, { held }) => sum + held(), 0));
    metrics.waiting.set(all.reduce((sum, { waiting }) => sum + waiting(), 0));
  }

  function of(id: string): Organization {
    const known = organizations.get(id) ?? createOrganization(id, parts);
    organizations.set(id, known);
    return known;
  }

  check();
  return {
    take: (organizationId, decided) => of(organizationId).take(decided),
    release: (organizationId) => of(organizationId).release(),
    async stop() {
      callOff();
      await own.stop();
      await store.stop();
    },
  };
}

/** The slots of an edge process: counts in NATS, limits from the snapshot, the clock of the process. */
export function openSlots(options: {
  connection: Promise<NatsConnection>;
  holder: Pick<SnapshotHolder, "snapshot">;
  registry: Registry;
  logger: Logger;
  random: () => number;
  times?: SlotTimes;
  clock?: Clock;
}): LeaseSlots {
  const { holder, times = slotTimes, clock = processClock } = options;
  const store = createNatsLeaseStore(options);
  const metrics = createSlotMetrics(options.registry);
  return createLeaseSlots({
    ...options,
    ...{ edgeId: randomUUID(), store, clock, times, metrics },
    limitOf(organizationId) {
      const organization = holder.snapshot?.organizations.get(organizationId);
      if (organization === undefined || isDeleted(organization)) return null;
      return organization.limits.sse_connections;
    },
  });
}

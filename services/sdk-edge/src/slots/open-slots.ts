import { randomUUID } from "node:crypto";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";
import { isDeleted } from "../snapshot/snapshot.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { type Clock, processClock, type SlotTimes, slotTimes } from "./clock.ts";
import { createLeaseSlots, type LeaseSlots } from "./lease-slots.ts";
import { createNatsLeaseStore } from "./nats-lease-store.ts";
import { createSlotMetrics } from "./slot-metrics.ts";

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

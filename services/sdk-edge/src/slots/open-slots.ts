import { randomUUID } from "node:crypto";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";
import { isDeleted } from "../snapshot/snapshot.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { type Clock, processClock } from "./clock.ts";
import { createLeaseSlots } from "./lease-slots.ts";
import { createNatsLeaseStore } from "./nats-lease-store.ts";
import { registerSlotMetrics } from "./slot-metrics.ts";
import { type SlotTimes, slotTimes } from "./slot-times.ts";
import type { StreamSlots } from "./stream-slots.ts";

/** The slots of an edge process: counts in NATS, limits from the snapshot, the clock of the process. */
export type OpenedSlots = {
  slots: StreamSlots;
  /** To be called after the streams were closed and before the connection is. */
  stop(): Promise<void>;
};

export function openSlots(options: {
  connection: Promise<NatsConnection>;
  replicas: number;
  holder: Pick<SnapshotHolder, "snapshot">;
  registry: Registry;
  logger: Logger;
  random: () => number;
  times?: SlotTimes;
  clock?: Clock;
}): OpenedSlots {
  const { holder, times = slotTimes, clock = processClock } = options;
  const store = createNatsLeaseStore(options);
  const slots = createLeaseSlots({
    ...options,
    edgeId: randomUUID(),
    store,
    clock,
    times,
    limitOf: (organizationId) => streamLimit(holder, organizationId),
  });
  registerSlotMetrics(options.registry, slots.figures);
  return {
    slots,
    async stop() {
      await slots.stop();
      await store.stop();
    },
  };
}

/** Maximum number of open streams of an organization; null: unlimited, also for an unknown organization. */
export function streamLimit(
  { snapshot }: Pick<SnapshotHolder, "snapshot">,
  organizationId: string,
): number | null {
  const organization = snapshot?.organizations.get(organizationId);
  if (organization === undefined || isDeleted(organization)) return null;
  return organization.limits.sse_connections;
}

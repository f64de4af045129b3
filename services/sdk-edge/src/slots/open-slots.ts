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

/** Slots as an edge has them: leases in NATS, limits from the snapshot, time from the process. */
export type OpenedSlots = {
  slots: StreamSlots;
  /** Gives the lease up; to be called when the streams are closed and the connection still stands. */
  stop(): Promise<void>;
};

export function openSlots(options: {
  connection: Promise<NatsConnection>;
  replicas: number;
  holder: Pick<SnapshotHolder, "snapshot" | "subscribe">;
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
    store,
    clock,
    times,
    limitOf: (organizationId) => streamLimit(holder, organizationId),
    newId: randomUUID,
  });
  holder.subscribe(({ changed }) => {
    for (const organizationId of changed.organizations) slots.limitChanged(organizationId);
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

/** How many streams an organization's plan allows; null: as many as it likes, also if it is not known. */
export function streamLimit(
  { snapshot }: Pick<SnapshotHolder, "snapshot">,
  organizationId: string,
): number | null {
  const organization = snapshot?.organizations.get(organizationId);
  if (organization === undefined || isDeleted(organization)) return null;
  return organization.limits.sse_connections;
}

import { leaseKey } from "@halyard/contracts";
import { followLeases } from "./leases.ts";
import {
  createOrganization,
  type Organization,
  type SlotOptions,
  type SlotParts,
} from "./organization.ts";
import { createOwnEntry } from "./own-entry.ts";
import type { StreamSlots } from "./stream-slots.ts";

/** Slots for streams, counted over all edges in the bucket LEASES. No open stream is ever closed. */
export type LeaseSlots = StreamSlots & {
  /** To be called after the streams were closed and before the connection is. */
  stop(): Promise<void>;
};

/** Maximum number of organizations whose counts a check writes. A server of NATS takes them in a few milliseconds. */
const mostSettling = 2_000;

export function createLeaseSlots(options: SlotOptions): LeaseSlots {
  const { store, clock, times, metrics } = options;
  const organizations = new Map<string, Organization>();
  let checkedMs = clock.elapsed();
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
    callOff = clock.after(times.checkEveryMs, check);
    // A process that was suspended has not watched the other edges meanwhile.
    const forMs = Math.min(clock.elapsed() - checkedMs, 2 * times.checkEveryMs);
    checkedMs = clock.elapsed();
    if (store.isCurrent()) watchOthers(forMs, parts);
    own.check();
    const all = [...organizations.values()];
    let free = mostSettling;
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

/**
 * Ends the entries of edges that stopped renewing, so that their counts no longer apply. An ended entry stays
 * while an organization's entry names the edge.
 */
function watchOthers(forMs: number, { edgeId, leases, store, times, logger }: SlotParts): void {
  const isNamed = (id: string) =>
    [...leases.content.organizations.values()].some(({ holders }) => id in holders);
  for (const [id, edge] of leases.content.edges) {
    edge.silentMs += forMs;
    if (id !== edgeId && !edge.isEnded && edge.silentMs > times.endAfterMs)
      void end(id, edge.revision);
    if (edge.isEnded && edge.silentMs > times.forgetAfterMs) {
      const named = isNamed(id);
      edge.silentMs = named ? 0 : Number.NEGATIVE_INFINITY;
      if (!named) void store.forget(leaseKey.edge(id));
    }
  }

  /** Has no effect if the edge has renewed its entry meanwhile. */
  async function end(id: string, over: number): Promise<void> {
    if ((await leases.write(leaseKey.edge(id), { state: "ended" }, over)) === "written")
      logger.warn({ edge: id }, "an edge stopped renewing its entry; its streams no longer count");
  }
}

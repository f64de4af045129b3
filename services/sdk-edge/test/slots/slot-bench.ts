import { leaseKey, leasesBucket, type OrganizationStreams } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import { createMetrics } from "@halyard/service";
import { eventually } from "@halyard/testing";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { type OpenedSlots, openSlots } from "../../src/slots/open-slots.ts";
import { type SlotTimes, slotTimes } from "../../src/slots/slot-times.ts";
import { createSnapshotHolder, type SnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { id, organizationEntry } from "../builders.ts";
import { type BenchClock, createBenchClock } from "./bench-clock.ts";

/** Edges that share slots through a real NATS server, without all else that makes an edge. */
export type SlotBench = {
  openEdge(times?: Partial<SlotTimes>): Promise<BenchEdge>;
  /** Gives the organization another limit, on all edges. */
  changeLimit(limit: number | null): Promise<void>;
  /** Who holds how many of the organization's slots, as it is written. */
  written(): Promise<OrganizationStreams["holders"]>;
  /** Writes in an edge's place, over whatever stands there. */
  write(key: string, value: unknown): Promise<void>;
  read(key: string): Promise<unknown>;
  deleteBucket(): Promise<void>;
  /** Kills the edges, and leaves no bucket to who comes after them. */
  close(): Promise<void>;
};

export type BenchEdge = {
  readonly open: number;
  /** Its own. Leases end by it, and patience. */
  readonly clock: BenchClock;
  take(organizationId?: string): Promise<Outcome>;
  takeMany(times: number): Promise<Outcome[]>;
  closeOne(): void;
  metric(name: string): Promise<number>;
  log(): string;
  stop(): Promise<void>;
  /** Its connection is gone, and nobody says good-bye. */
  kill(): Promise<void>;
};

export type Outcome = "opened" | "RATE_001" | "SERVER_002";

/**
 * Nobody is refused only because a busy machine was slow to answer: an edge that has just begun, for
 * example, takes its lease at once, and may hear of the others' leases seconds later.
 */
export const benchTimes: SlotTimes = { ...slotTimes, patienceMs: 60_000, awayAfterMs: 60_000 };

export async function createSlotBench(url: string, initialLimit: number): Promise<SlotBench> {
  const silent = pino({ level: "silent" });
  const connection = await connectNats({ nats: { url }, name: "test", logger: silent });
  const manager = await jetstreamManager(connection);
  const edges: (BenchEdge & { holder: SnapshotHolder })[] = [];
  let version = 1;
  let limit: number | null = initialLimit;

  const entry = () => organizationEntry(version, { sse_connections: limit });

  async function read(key: string): Promise<unknown> {
    const found = await manager.direct.getMessage(leasesBucket.streamName, {
      last_by_subj: leasesBucket.subjectPrefix + key,
    });
    return found?.json();
  }

  async function deleteBucket(): Promise<void> {
    await manager.streams.delete(leasesBucket.streamName);
  }

  return {
    async openEdge(times = {}) {
      const holder = createSnapshotHolder({ now: Date.now, pace: { restMs: () => 0 } });
      holder.replace(id("epoch"), [entry()]);
      const own = await connectNats({ nats: { url }, name: "edge", logger: silent });
      const edge = createEdge(own, holder, { ...benchTimes, ...times });
      edges.push(Object.assign(edge, { holder }));
      await eventually(async () => (await edge.metric("lease{")) === 1);
      return edge;
    },
    async changeLimit(changed) {
      limit = changed;
      version += 1;
      for (const { holder } of edges) holder.replace(id("epoch"), [entry()]);
    },
    async written() {
      const value = await read(leaseKey.organization(id("org")));
      return (value as OrganizationStreams | undefined)?.holders ?? {};
    },
    async write(key, value) {
      await jetstream(connection).publish(leasesBucket.subjectPrefix + key, JSON.stringify(value));
    },
    read,
    deleteBucket,
    async close() {
      // An edge that lives makes a bucket that is deleted anew.
      for (const edge of edges) await edge.kill();
      await deleteBucket();
      await connection.close();
    },
  };
}

function createEdge(connection: NatsConnection, holder: SnapshotHolder, times: SlotTimes) {
  const lines: string[] = [];
  const registry = createMetrics({ service: "sdk-edge" });
  const clock = createBenchClock();
  const { slots, stop }: OpenedSlots = openSlots({
    connection: Promise.resolve(connection),
    replicas: 1,
    holder,
    registry,
    logger: pino({ level: "trace" }, { write: (line: string) => lines.push(line) }),
    random: Math.random,
    times,
    clock,
  });
  let open = 0;
  slots.onLost(() => {
    for (; open > 0; open -= 1) slots.release(id("org"));
  });

  const edge = {
    get open() {
      return open;
    },
    clock,
    take: (organizationId = id("org")) =>
      new Promise<Outcome>((resolve) =>
        slots.take(organizationId, (refusal) => {
          if (refusal === undefined && organizationId === id("org")) open += 1;
          resolve(refusal === undefined ? "opened" : (refusal.refused as Outcome));
        }),
      ),
    takeMany: (times: number) => Promise.all(Array.from({ length: times }, () => edge.take())),
    closeOne() {
      open -= 1;
      slots.release(id("org"));
    },
    async metric(name: string) {
      const text = await registry.metrics();
      const line = text.split("\n").find((one) => one.startsWith(`halyard_edge_slots_${name}`));
      return Number(line?.split(" ").at(-1));
    },
    log: () => lines.join(""),
    async stop() {
      await stop();
      await connection.close();
    },
    async kill() {
      await connection.close();
      // Without the connection it can tell nobody any more; its timers end.
      await stop();
    },
  };
  return edge;
}

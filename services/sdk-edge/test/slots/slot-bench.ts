import { leaseKey, leasesBucket, type OrganizationStreams } from "@halyard/contracts";
import { connectNats, ensureLeases, establishLeases, keepStreams } from "@halyard/jetstream";
import { createMetrics } from "@halyard/service";
import { eventually, natsLogin } from "@halyard/testing";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { type SlotTimes, slotTimes } from "../../src/slots/clock.ts";
import { openSlots } from "../../src/slots/lease-slots.ts";
import { createSnapshotHolder, type SnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { id, organizationEntry } from "../builders.ts";
import { type BenchClock, createBenchClock } from "./bench-clock.ts";

/** Runs the stream slots of several edges with a real NATS server, without the rest of an edge. */
export type SlotBench = {
  openEdge(times?: Partial<SlotTimes>): Promise<BenchEdge>;
  /** Changes the organization's limit on all edges. */
  changeLimit(limit: number | null): Promise<void>;
  /** Returns the organization's counts by edge from the bucket. */
  written(): Promise<OrganizationStreams["holders"]>;
  /** Writes an entry regardless of its revision. */
  write(key: string, value: unknown): Promise<void>;
  read(key: string): Promise<unknown>;
  deleteBucket(): Promise<void>;
  /** Replaces the bucket by an empty one that is not marked as established. */
  emptyBucket(): Promise<void>;
  /** Kills the edges and deletes the bucket. */
  close(): Promise<void>;
};

export type BenchEdge = {
  readonly open: number;
  /** The edge's own clock, which measures all of its durations. */
  readonly clock: BenchClock;
  take(organizationId?: string): Promise<Outcome>;
  takeMany(times: number): Promise<Outcome[]>;
  closeOne(): void;
  metric(name: string): Promise<number>;
  log(): string;
  stop(): Promise<void>;
  /** Closes the connection first, so that the edge cannot end its entry. */
  kill(): Promise<void>;
};

export type Outcome = "opened" | "RATE_001" | "SERVER_002";

/** Times with a long request timeout, for slow responses of a busy machine. */
export const benchTimes: SlotTimes = { ...slotTimes, timeoutMs: 60_000 };

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

  await establishLeases({ client: jetstream(connection), manager, replicas: 1 });
  const streams = keepStreams({ connection, replicas: 1, logger: silent });
  return {
    async openEdge(times = {}) {
      const holder = createSnapshotHolder({ now: Date.now, pace: { pauseMs: () => 0 } });
      holder.replace(id("epoch"), [entry()]);
      const own = await connectNats({
        nats: natsLogin("sdk-edge", url),
        name: "sdk-edge",
        logger: silent,
      });
      const edge = createEdge(own, holder, { ...benchTimes, ...times });
      edges.push(Object.assign(edge, { holder }));
      await eventually(async () => (await edge.metric("stream_slot_lease_held{")) === 1);
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
    async emptyBucket() {
      await deleteBucket();
      await ensureLeases(manager, 1);
    },
    async close() {
      for (const edge of edges) await edge.kill();
      await streams.stop();
      await deleteBucket();
      await connection.close();
    },
  };
}

function createEdge(connection: NatsConnection, holder: SnapshotHolder, times: SlotTimes) {
  const lines: string[] = [];
  const registry = createMetrics({ service: "sdk-edge" });
  const clock = createBenchClock();
  const slots = openSlots({
    connection: Promise.resolve(connection),
    holder,
    registry,
    logger: pino({ level: "trace" }, { write: (line: string) => lines.push(line) }),
    random: Math.random,
    times,
    clock,
  });
  let open = 0;

  const edge = {
    get open() {
      return open;
    },
    clock,
    take: (organizationId = id("org")) =>
      new Promise<Outcome>((resolve) =>
        slots.take(organizationId, (problem) => {
          if (problem === undefined && organizationId === id("org")) open += 1;
          resolve(problem === undefined ? "opened" : (problem.rejected as Outcome));
        }),
      ),
    takeMany: (times: number) => Promise.all(Array.from({ length: times }, () => edge.take())),
    closeOne() {
      open -= 1;
      slots.release(id("org"));
    },
    async metric(name: string) {
      const text = await registry.metrics();
      const line = text.split("\n").find((one) => one.startsWith(`halyard_${name}`));
      return Number(line?.split(" ").at(-1));
    },
    log: () => lines.join(""),
    async stop() {
      await slots.stop();
      await connection.close();
    },
    async kill() {
      await connection.close();
      await slots.stop();
    },
  };
  return edge;
}

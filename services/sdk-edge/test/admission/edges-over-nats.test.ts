import { randomUUID } from "node:crypto";
import { type EdgeStreams, edgeStreams } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import {
  createOpenStreams,
  type FollowedReports,
  followOpenStreams,
  type OpenStreams,
} from "@halyard/reports";
import { createMetrics } from "@halyard/service";
import {
  eventually,
  natsLogin,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { openSlots } from "../../src/admission/open-slots.ts";
import { createSnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { id, organizationWith } from "../builders.ts";

/**
 * Tests the slots of edges with a real NATS server. The edges report more often than in production, so that they also
 * forget a silent edge earlier.
 */
const limit = 10;
const intervalMs = 20;
const silentAfterMs = (edgeStreams.silentAfterMs / edgeStreams.intervalMs) * intervalMs;
let nats: RestartableNats;
let operator: NatsConnection;
let followed: FollowedReports;
/** The streams that the edges have reported. */
let reported: OpenStreams;
let edges: { kill(): Promise<void> }[];
let one: TestEdge;
let other: TestEdge;

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  operator = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
});
afterAll(async () => {
  await operator?.close();
  await nats?.stop();
});
beforeEach(async () => {
  reported = createOpenStreams();
  const logger = pino({ level: "silent" });
  followed = followOpenStreams({ connection: operator, streams: reported, logger });
  edges = [];
  [one, other] = [await openEdge(), await openEdge()];
});
afterEach(async () => {
  for (const edge of edges) await edge.kill();
  followed.stop();
});

type TestEdge = Awaited<ReturnType<typeof openEdge>>;

async function openEdge(edge: string = randomUUID()) {
  const lines: string[] = [];
  const logger = pino({ level: "trace" }, { write: (line: string) => lines.push(line) });
  const login = natsLogin("sdk-edge", nats.url);
  const connection = await connectNats({ nats: login, name: "sdk-edge", logger });
  const holder = createSnapshotHolder({ now: Date.now, pace: { pauseMs: () => 0 } });
  holder.replace(id("epoch"), organizationWith({ sse_connections: limit }));
  const registry = createMetrics({ service: "sdk-edge" });
  const given = { connection: Promise.resolve(connection), edge, holder, registry, logger };
  const slots = openSlots({ ...given, intervalMs });
  expect(slots.knowsOthers()).toBe(false);
  const opened = {
    edge,
    take: () => slots.take(id("org"))?.rejected ?? "opened",
    release: () => slots.release(id("org")),
    log: () => lines.join(""),
    async metric(name: string) {
      const line = (await registry.metrics()).split("\n").find((each) => each.startsWith(name));
      return Number(line?.split(" ").at(-1));
    },
    otherEdges: (): Promise<number> => opened.metric("halyard_stream_slots_other_edges"),
    async stop() {
      await slots.stop();
      await connection.close();
    },
    /** Closes the connection first, so that the edge cannot report its end. */
    async kill() {
      await connection.close();
      await slots.stop();
    },
  };
  edges.push(opened);
  await eventually(slots.knowsOthers);
  return opened;
}

function fill(edge: TestEdge, times = limit): void {
  for (let taken = 0; taken < times; taken += 1) expect(edge.take()).toBe("opened");
}

/** Waits until an edge rejects a stream. */
async function untilFull(edge: TestEdge): Promise<void> {
  await eventually(() => {
    const outcome = edge.take();
    if (outcome === "opened") edge.release();
    return outcome === "RATE_001";
  });
}

describe("given edges that are connected", () => {
  it("admit against the sum of their streams", async () => {
    fill(one, limit - 1);
    other.take();
    await untilFull(other);
    expect(one.take()).toBe("RATE_001");
    one.release();
    await eventually(() => other.take() === "opened");
    await untilFull(one);
  });

  it("know the streams of the others shortly after their start", async () => {
    fill(one);
    await untilFull(other);
    const newcomer = await openEdge();
    await eventually(async () => (await newcomer.otherEdges()) === 2);
    expect(newcomer.take()).toBe("RATE_001");
  });

  it("have metrics of the other edges and of rejected streams", async () => {
    await eventually(async () => (await one.otherEdges()) === 1);
    fill(one);
    one.take();
    expect(await one.metric("halyard_stream_slot_requests_rejected_total")).toBe(1);
  });

  it("ignore invalid reports, log the first of an interval, and stay bounded", async () => {
    fill(one, limit - 1);
    const streams = { [id("org")]: 1_000 };
    const edge = randomUUID();
    const invalid = [
      "nothing",
      { state: "changed", edge, streams: { "not an id": 1 } },
      { state: "changed", edge, streams: { [id("org")]: -1 } },
      { state: "changed", edge: "x".repeat(100), streams },
      { state: "all", edge, part: 0, parts: 1, streams },
      { state: "unknown", edge, streams },
      { state: "changed", edge, streams, padding: "x".repeat(edgeStreams.maxBytes) },
      // Its own counts, from another process.
      { state: "changed", edge: one.edge, streams },
    ];
    for (const report of invalid) operator.publish(edgeStreams.subject, JSON.stringify(report));
    await operator.flush();
    await eventually(() => one.log().includes("ignored an invalid report"));
    const last: EdgeStreams = { state: "changed", edge, streams: { [id("org")]: 1 } };
    operator.publish(edgeStreams.subject, JSON.stringify(last));
    await untilFull(one);
    operator.publish(edgeStreams.subject, JSON.stringify({ state: "stopped", edge }));
    await eventually(() => one.take() === "opened");
    expect(one.take()).toBe("RATE_001");
  });
});

describe("given an edge that ends", () => {
  it("frees its slots immediately when it is stopped", async () => {
    fill(one);
    await untilFull(other);
    await one.stop();
    await eventually(() => other.take() === "opened");
    expect(other.log()).not.toContain("an edge has stopped reporting");
  });

  it("frees its slots when it is killed, once it has been silent for long enough", async () => {
    fill(one);
    await untilFull(other);
    const killedMs = performance.now();
    await one.kill();
    await eventually(() => other.take() === "opened");
    expect(performance.now() - killedMs).toBeGreaterThan(silentAfterMs - 2 * intervalMs);
    expect(other.log()).toContain("an edge has stopped reporting");
  });
});

describe("given a NATS server that is killed", () => {
  it("is replaced by the last known counts, of all edges and for any time", async () => {
    fill(one, limit - 1);
    await eventually(() => reported.of(id("org")) === limit - 1);
    await nats.kill();
    const killedMs = performance.now();
    await eventually(() => performance.now() - killedMs > 2 * silentAfterMs);
    expect([other.take(), other.take()]).toEqual(["opened", "RATE_001"]);
    expect([one.take(), one.take()]).toEqual(["opened", "RATE_001"]);
    await nats.start();
    // More streams than the limit are open now, so one that closes frees no slot.
    await eventually(() => {
      one.release();
      return one.take() === "RATE_001";
    });
    one.release();
    await eventually(() => other.take() === "opened");
    expect(other.log()).not.toContain("an edge has stopped reporting");
  });
});

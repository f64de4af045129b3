import { rmSync } from "node:fs";
import { leaseKey } from "@halyard/contracts";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { slotTimes } from "../../src/slots/clock.ts";
import { type BenchEdge, createSlotBench, type SlotBench } from "./slot-bench.ts";

/** Tests lost edges and outages with a real NATS server. Only the clocks of the edges leap. */
const limit = 20;
let nats: RestartableNats;
let bench: SlotBench;

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
});
afterAll(() => nats.stop());
beforeEach(async () => {
  bench = await createSlotBench(nats.url, limit);
});
afterEach(() => bench.close());

describe("given an edge that ends", () => {
  it("frees its slots immediately when it is stopped", async () => {
    const ending = await bench.openEdge();
    const staying = await bench.openEdge();
    await ending.takeMany(limit);
    await ending.stop();
    // Well before a missing renewal would have ended its entry.
    const withinMs = slotTimes.endAfterMs / 2;
    await eventually(async () => (await staying.take()) === "opened", { withinMs });
  });

  it("frees its slots when it is killed, but not while it could still be suspended", async () => {
    const ending = await bench.openEdge();
    const staying = await bench.openEdge();
    const begunMs = staying.clock.monotonicMs();
    await ending.takeMany(limit);
    await ending.kill();
    await eventually(async () => {
      staying.clock.leap(slotTimes.checkIntervalMs);
      return (await staying.take()) === "opened";
    });
    expect(staying.clock.monotonicMs() - begunMs).toBeGreaterThan(slotTimes.countedForMs);
  });
});

describe("given a NATS server that does not respond", () => {
  it("counts writes whose acknowledgement was lost", async () => {
    const [one, other] = [await bench.openEdge(), await bench.openEdge()];
    await one.takeMany(limit - 10);
    nats.signal("SIGSTOP");
    const asked = [one.takeMany(30), other.takeMany(30)];
    for (const edge of [one, other])
      await eventually(() => edge.log().includes("the bucket LEASES is unavailable"));
    nats.signal("SIGCONT");
    const outcomes = (await Promise.all(asked)).flat();
    expect(outcomes.filter((outcome) => outcome === "opened").length).toBeLessThanOrEqual(10);
    await eventually(async () => {
      await Promise.all([one.takeMany(10), other.takeMany(10)]);
      return sumOpen([one, other]) === limit;
    });
    await eventually(async () => (await writtenSum()) === limit);
  });

  it("admits against the last counts, and publishes them when NATS is available again", async () => {
    const [one, other] = [await bench.openEdge(), await bench.openEdge()];
    await other.takeMany(10);
    // A write succeeds only if the edge has read the entry, so this edge has the count of the other one.
    await one.takeMany(5);
    await nats.kill();
    await eventually(async () => (await other.metric("stream_slot_lease_held{")) === 0);
    await eventually(async () => (await one.take()) === "opened");
    await one.takeMany(limit);
    expect(one.open).toBe(limit - 10);
    await nats.start();
    await eventually(async () => (await writtenSum()) === limit);
    // A disconnected edge admits against its last counts.
    await eventually(async () => (await other.metric("stream_slot_lease_held{")) === 1);
    expect(await other.take()).toBe("RATE_001");
  });
});

describe("given a lost bucket", () => {
  it.each([
    { how: "with the disk of NATS", lose: () => restartEmpty() },
    { how: "because it was deleted", lose: () => bench.deleteBucket() },
  ])("keeps all streams and admits nothing above the limit ($how)", async ({ lose }) => {
    const edges = [await bench.openEdge(), await bench.openEdge(), await bench.openEdge()];
    const [one, other, third] = edges as [BenchEdge, BenchEdge, BenchEdge];
    await one.takeMany(limit - 5);
    await other.takeMany(5);
    await lose();
    await eventually(async () => (await third.take()) === "SERVER_002");
    await eventually(async () => (await third.take()) === "RATE_001");
    expect(edges.map(({ open }) => open)).toEqual([limit - 5, 5, 0]);
    expect(await writtenSum()).toBe(limit);
  });
});

describe("given an edge that starts with a bucket without entries of live edges", () => {
  it("admits immediately in a new installation", async () => {
    const edge = await bench.openEdge();
    expect(await edge.take()).toBe("opened");
  });

  it("admits immediately if the bucket has the entry of a stopped edge", async () => {
    await bench.emptyBucket();
    const stopped = "0192aaaa-0000-7000-8000-000000000001";
    await bench.write(leaseKey.edge(stopped), { state: "ended" });
    const edge = await bench.openEdge();
    expect(await edge.take()).toBe("opened");
  });

  it("admits nothing for five seconds if the bucket may have replaced a lost one", async () => {
    await bench.emptyBucket();
    const edge = await bench.openEdge();
    edge.clock.stop();
    expect(await edge.take()).toBe("SERVER_002");
    edge.clock.run();
    edge.clock.leap(slotTimes.publishWithinMs);
    expect(await edge.take()).toBe("opened");
  });
});

describe("given an edge whose entry was ended", () => {
  it("keeps its streams, renews the entry and is counted again", async () => {
    const edge = await bench.openEdge();
    expect(await edge.takeMany(3)).toEqual(Array(3).fill("opened"));
    const [edgeId = ""] = Object.keys(await bench.written());
    await bench.write(leaseKey.edge(edgeId), { state: "ended" });
    await eventually(() => edge.log().includes("other edges ended this edge's entry"));
    expect(await edge.take()).toBe("opened");
    expect(await bench.read(leaseKey.edge(edgeId))).toMatchObject({ state: "held" });
    expect(await bench.written()).toEqual({ [edgeId]: 4 });
  });
});

async function restartEmpty(): Promise<void> {
  await nats.kill();
  rmSync(nats.storeDir, { recursive: true });
  await nats.start();
}

function sumOpen(edges: readonly BenchEdge[]): number {
  return edges.reduce((sum, { open }) => sum + open, 0);
}

async function writtenSum(): Promise<number> {
  return Object.values(await bench.written()).reduce((sum, slots) => sum + slots, 0);
}

import { leaseKey } from "@halyard/contracts";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { slotTimes } from "../../src/slots/slot-times.ts";
import { type BenchEdge, benchTimes, createSlotBench, type SlotBench } from "./slot-bench.ts";

/**
 * Edges that end, and NATS that goes and comes: as it really does, and only the edges' clocks leap. In
 * simulated time it is told to the second.
 */
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
  it("leaves its slots to the others, at once when it is stopped", async () => {
    const ending = await bench.openEdge();
    const staying = await bench.openEdge();
    await ending.takeMany(limit);
    await ending.stop();
    // Long before silence alone would have ended the lease.
    const withinMs = slotTimes.endAfterMs / 2;
    await eventually(async () => (await staying.take()) === "opened", { withinMs });
  });

  it("leaves its slots to the others when it is killed, not before its lease can have ended", async () => {
    const ending = await bench.openEdge();
    const staying = await bench.openEdge();
    const begunMs = staying.clock.elapsed();
    await ending.takeMany(limit);
    await ending.kill();
    await eventually(async () => {
      staying.clock.leap(slotTimes.watchEveryMs);
      return (await staying.take()) === "opened";
    });
    expect(staying.clock.elapsed() - begunMs).toBeGreaterThan(slotTimes.validForMs);
  });
});

describe("given NATS that does not answer", () => {
  it("counts what was written meanwhile, though nobody heard of it", async () => {
    const [one, other] = [await bench.openEdge(), await bench.openEdge()];
    await one.takeMany(limit - 10);
    nats.signal("SIGSTOP");
    const asked = [one.takeMany(30), other.takeMany(30)];
    for (const edge of [one, other])
      await eventually(() => edge.log().includes("the leases for streams cannot be asked for"));
    nats.signal("SIGCONT");
    const outcomes = (await Promise.all(asked)).flat();
    expect(outcomes.filter((outcome) => outcome === "opened").length).toBeLessThanOrEqual(10);
    await eventually(async () => {
      await Promise.all([one.takeMany(10), other.takeMany(10)]);
      return sumOpen([one, other]) === limit;
    });
    await eventually(async () => (await writtenSum()) === limit);
  });

  it("gives slots that are held, refuses others, and admits again when it is back", async () => {
    const edge = await bench.openEdge({ validForMs: 2 * benchTimes.patienceMs });
    expect(await edge.takeMany(5)).toEqual(Array(5).fill("opened"));
    edge.clock.stop();
    await nats.kill();
    edge.closeOne();
    expect(await edge.take()).toBe("opened");
    const refused = edge.take();
    edge.clock.leap(benchTimes.patienceMs);
    expect(await refused).toBe("SERVER_002");
    expect(edge.open).toBe(5);
    edge.clock.leap(benchTimes.patienceMs);
    expect(edge.open).toBe(0);
    edge.clock.run();
    await nats.start();
    await eventually(async () => (await edge.take()) === "opened");
    await eventually(async () => (await writtenSum()) === edge.open);
  });
});

describe("given a bucket that is deleted", () => {
  it("loses all slots, makes another one, and admits as many again", async () => {
    const edges = [await bench.openEdge(), await bench.openEdge()];
    await edges[0]?.takeMany(limit);
    await bench.deleteBucket();
    await eventually(() => {
      for (const { clock } of edges) clock.leap(slotTimes.watchEveryMs);
      return sumOpen(edges) === 0;
    });
    await eventually(async () => {
      await Promise.all(edges.map((edge) => edge.takeMany(limit)));
      return sumOpen(edges) === limit;
    });
    expect(await writtenSum()).toBe(limit);
  });
});

describe("given a lease that somebody has ended", () => {
  it("takes another lease when its own was ended, and its streams are closed", async () => {
    const edge = await bench.openEdge();
    expect(await edge.takeMany(3)).toEqual(Array(3).fill("opened"));
    const [leaseId = ""] = Object.keys(await bench.written());
    await bench.write(leaseKey.edge(leaseId), { state: "ended" });
    await eventually(() => edge.open === 0);
    await eventually(async () => (await edge.take()) === "opened");
    expect(await edge.metric("leases_lost_total")).toBe(1);
  });
});

function sumOpen(edges: readonly BenchEdge[]): number {
  return edges.reduce((sum, { open }) => sum + open, 0);
}

async function writtenSum(): Promise<number> {
  return Object.values(await bench.written()).reduce((sum, slots) => sum + slots, 0);
}

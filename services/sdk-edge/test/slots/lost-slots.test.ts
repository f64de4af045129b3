import { setTimeout as delay } from "node:timers/promises";
import { leaseKey } from "@halyard/contracts";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type BenchEdge, createSlotBench, type SlotBench } from "./slot-bench.ts";

/** Edges that end, and NATS that goes and comes: as it really does. In simulated time it is told to the second. */
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
afterEach(async () => {
  await bench.deleteBucket();
  await bench.close();
});

/** So that a killed edge is noticed soon; long enough for a busy machine to renew in time. */
const shortLived = {
  renewEveryMs: 200,
  retryAfterMs: 50,
  validForMs: 1_500,
  endAfterMs: 2_000,
  watchEveryMs: 200,
};

describe("given an edge that ends", () => {
  it("leaves its slots to the others, at once when it is stopped", async () => {
    const ending = await bench.openEdge();
    const staying = await bench.openEdge();
    await ending.takeMany(limit);
    await ending.stop();
    await eventually(async () => (await staying.take()) === "opened", { withinMs: 2_000 });
  });

  it("leaves its slots to the others when it is killed, not before its lease can have ended", async () => {
    const ending = await bench.openEdge(shortLived);
    const staying = await bench.openEdge(shortLived);
    await ending.takeMany(limit);
    await ending.kill();
    const killedAtMs = performance.now();
    await eventually(async () => (await staying.take()) === "opened");
    expect(performance.now() - killedAtMs).toBeGreaterThan(shortLived.validForMs);
  });
});

describe("given NATS that does not answer", () => {
  it("counts what was written meanwhile, though nobody heard of it", async () => {
    const [one, other] = [await bench.openEdge(), await bench.openEdge()];
    await one.takeMany(limit - 10);
    nats.signal("SIGSTOP");
    const asked = [one.takeMany(30), other.takeMany(30)];
    await delay(2_000);
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
    const edge = await bench.openEdge({ ...shortLived, validForMs: 3_000, endAfterMs: 4_000 });
    await edge.takeMany(5);
    await nats.kill();
    edge.closeOne();
    expect(await edge.take()).toBe("opened");
    expect(await edge.take()).toBe("SERVER_002");
    await eventually(() => edge.open === 0);
    await nats.start();
    await eventually(async () => (await edge.take()) === "opened");
    await eventually(async () => (await writtenSum()) === edge.open);
  });
});

describe("given a bucket that is deleted", () => {
  it("loses all slots, makes another one, and admits as many again", async () => {
    const edges = [await bench.openEdge(shortLived), await bench.openEdge(shortLived)];
    await edges[0]?.takeMany(limit);
    await bench.deleteBucket();
    await eventually(() => sumOpen(edges) === 0);
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
    await edge.takeMany(3);
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

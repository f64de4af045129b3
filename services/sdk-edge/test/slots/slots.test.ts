import { leaseKey } from "@halyard/contracts";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { slotTimes } from "../../src/slots/clock.ts";
import { id } from "../builders.ts";
import { type BenchEdge, createSlotBench, type Outcome, type SlotBench } from "./slot-bench.ts";

/** Tests edges with a real NATS server. `leases.test.ts` tests durations in simulated time. */
const limit = 100;
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

describe("given four edges", () => {
  let edges: BenchEdge[];

  beforeEach(async () => {
    edges = [];
    for (let number = 0; number < 4; number += 1) edges.push(await bench.openEdge());
  });

  it("admit exactly the limit if hundreds of requests arrive together", async () => {
    const outcomes = (await Promise.all(edges.map((edge) => edge.takeMany(150)))).flat();
    expect(count(outcomes)).toEqual({ opened: limit, RATE_001: 600 - limit });
    expect(await writtenSum()).toBe(limit);
  });

  it("admit exactly the limit while streams open and close on all edges", async () => {
    let most = 0;
    const isBusy = edges.map(async (edge) => {
      for (let round = 0; round < 30; round += 1) {
        await edge.takeMany(10);
        most = Math.max(most, sumOpen(edges));
        for (let closed = 0; closed < 8 && edge.open > 0; closed += 1) edge.closeOne();
      }
    });
    await Promise.all(isBusy);
    expect(most).toBeLessThanOrEqual(limit);
    await eventually(async () => (await writtenSum()) === sumOpen(edges));
    await Promise.all(edges.map((edge) => edge.takeMany(limit)));
    expect(sumOpen(edges)).toBe(limit);
  });

  it("admit a stream on another edge after one has closed", async () => {
    const [first, second] = edges as [BenchEdge, BenchEdge];
    await first.takeMany(limit);
    expect(await second.take()).toBe("RATE_001");
    first.closeOne();
    first.clock.leap(1_000);
    await eventually(async () => (await second.take()) === "opened");
  });

  it("apply a raised or lowered limit immediately, and close no stream", async () => {
    const [first, second] = edges as [BenchEdge, BenchEdge];
    await first.takeMany(limit);
    await bench.changeLimit(limit + 2);
    expect(count(await second.takeMany(3))).toEqual({ opened: 2, RATE_001: 1 });
    await bench.changeLimit(1);
    expect(await first.take()).toBe("RATE_001");
    expect(first.open).toBe(limit);
  });

  it("count the streams of an organization without a limit and admit all of them", async () => {
    await bench.changeLimit(null);
    const [first, second] = edges as [BenchEdge, BenchEdge];
    const outcomes = [...(await first.takeMany(150)), ...(await second.takeMany(50))];
    expect(count(outcomes)).toEqual({ opened: 200 });
    await eventually(async () => (await writtenSum()) === 200);
  });

  it("admit streams of unknown organizations", async () => {
    expect(await edges[0]?.take(id("org", 2))).toBe("opened");
  });

  it("have metrics of held slots, rejected requests and retried claims", async () => {
    await Promise.all(edges.map((edge) => edge.takeMany(30)));
    const sumOf = async (name: string) => {
      const figures = await Promise.all(edges.map((edge) => edge.metric(name)));
      return figures.reduce((sum, figure) => sum + figure, 0);
    };
    await eventually(async () => (await sumOf("stream_slots_held")) === limit);
    expect(await sumOf('stream_slot_requests_rejected_total{reason="limit"')).toBe(20);
    expect(await sumOf("stream_slot_lease_held{")).toBe(4);
    expect(await sumOf("stream_slot_claims_retried_total")).toBeGreaterThan(0);
  });
});

describe("given entries of other writers", () => {
  it("ends an unknown edge that never writes its entry", async () => {
    const edge = await bench.openEdge();
    const unknown = "0192aaaa-0000-7000-8000-000000000001";
    await bench.write(leaseKey.organization(id("org")), { holders: { [unknown]: limit } });
    await eventually(async () => (await edge.take()) === "RATE_001");
    await eventually(async () => {
      edge.clock.leap(slotTimes.checkIntervalMs);
      return (await edge.take()) === "opened";
    });
    expect(await bench.read(leaseKey.edge(unknown))).toEqual({ state: "ended" });
  });

  it("counts an edge that has just started", async () => {
    const edge = await bench.openEdge();
    await edge.take();
    const newcomer = "0192aaaa-0000-7000-8000-000000000002";
    await bench.write(leaseKey.edge(newcomer), { state: "held", renewals: 0 });
    await bench.write(leaseKey.organization(id("org")), { holders: { [newcomer]: limit } });
    await eventually(async () => (await writtenSum()) === limit + 1);
    expect(await edge.take()).toBe("RATE_001");
  });

  it("overwrites an invalid entry, and logs an error", async () => {
    const edge = await bench.openEdge();
    await edge.takeMany(2);
    await bench.write(leaseKey.organization(id("org")), { owners: [] });
    await eventually(() => edge.log().includes("is not valid"));
    await eventually(async () => (await writtenSum()) === 2);
  });
});

function count(outcomes: readonly Outcome[]): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

function sumOpen(edges: readonly BenchEdge[]): number {
  return edges.reduce((sum, { open }) => sum + open, 0);
}

async function writtenSum(): Promise<number> {
  return Object.values(await bench.written()).reduce((sum, slots) => sum + slots, 0);
}

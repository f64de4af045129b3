import { leaseKey } from "@halyard/contracts";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { id } from "../builders.ts";
import {
  type BenchEdge,
  benchTimes,
  createSlotBench,
  type Outcome,
  type SlotBench,
} from "./slot-bench.ts";

/** Edges over a real NATS server. What happens to the second is tried in simulated time elsewhere. */
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

  it("admit exactly the limit of hundreds that arrive at once", async () => {
    const outcomes = (await Promise.all(edges.map((edge) => edge.takeMany(150)))).flat();
    expect(count(outcomes)).toEqual({ opened: limit, RATE_001: 600 - limit });
    expect(await writtenSum()).toBe(limit);
  });

  it("admit no more and no fewer while streams come and go everywhere", async () => {
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

  it("share a slot that has become free", async () => {
    const [first, second] = edges as [BenchEdge, BenchEdge];
    await first.takeMany(limit);
    expect(await second.take()).toBe("RATE_001");
    first.closeOne();
    first.clock.leap(1_000);
    await eventually(async () => (await second.take()) === "opened");
  });

  it("follow a limit that is raised and lowered at once, and close nothing", async () => {
    const [first, second] = edges as [BenchEdge, BenchEdge];
    await first.takeMany(limit);
    await bench.changeLimit(limit + 2);
    expect(count(await second.takeMany(3))).toEqual({ opened: 2, RATE_001: 1 });
    await bench.changeLimit(1);
    expect(await first.take()).toBe("RATE_001");
    expect(first.open).toBe(limit);
  });

  it("write down what an organization without limit uses, and ask nobody", async () => {
    await bench.changeLimit(null);
    const [first, second] = edges as [BenchEdge, BenchEdge];
    const outcomes = [...(await first.takeMany(150)), ...(await second.takeMany(50))];
    expect(count(outcomes)).toEqual({ opened: 200 });
    await eventually(async () => (await writtenSum()) === 200);
  });

  it("admit organizations that they do not know", async () => {
    expect(await edges[0]?.take(id("org", 2))).toBe("opened");
  });

  it("tell what they hold, refuse and try again", async () => {
    await Promise.all(edges.map((edge) => edge.takeMany(30)));
    const sumOf = async (name: string) => {
      const figures = await Promise.all(edges.map((edge) => edge.metric(name)));
      return figures.reduce((sum, figure) => sum + figure, 0);
    };
    expect(await sumOf("held")).toBe(limit);
    expect(await sumOf('refused_total{reason="limit"')).toBe(20);
    expect(await sumOf("lease{")).toBe(4);
    expect(await sumOf("leases_lost_total")).toBe(0);
    expect(await sumOf("claims_retried_total")).toBeGreaterThan(0);
  });
});

describe("given entries that say something else", () => {
  it("ends a lease of which nobody ever heard, and has its slots", async () => {
    const edge = await bench.openEdge();
    await edge.take();
    const stranger = "0192aaaa-0000-7000-8000-000000000001";
    await bench.write(leaseKey.organization(id("org")), { holders: { [stranger]: limit } });
    expect(count(await edge.takeMany(limit))).toEqual({ opened: limit - 1, RATE_001: 1 });
    expect(await bench.read(leaseKey.edge(stranger))).toEqual({ state: "ended" });
  });

  it("counts a lease that was just taken, though it has not heard of it yet", async () => {
    const edge = await bench.openEdge();
    await edge.take();
    const newcomer = "0192aaaa-0000-7000-8000-000000000002";
    await bench.write(leaseKey.edge(newcomer), { state: "held", renewals: 0 });
    await bench.write(leaseKey.organization(id("org")), { holders: { [newcomer]: limit } });
    expect(await edge.take()).toBe("RATE_001");
  });

  it("gives no slot where it cannot tell who holds them, and says so", async () => {
    const edge = await bench.openEdge();
    await bench.write(leaseKey.organization(id("org")), { owners: [] });
    const refused = edge.take();
    await eventually(() => edge.log().includes("is not understood"));
    edge.clock.leap(benchTimes.patienceMs);
    expect(await refused).toBe("SERVER_002");
    await bench.write(leaseKey.organization(id("org")), { holders: {} });
    expect(await edge.take()).toBe("opened");
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

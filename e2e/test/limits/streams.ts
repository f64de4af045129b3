import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterEach, beforeAll, expect, it } from "@jest/globals";
import { beginUsageStory } from "../../src/stories/usage-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge, System } from "../../src/system/system.ts";
import { must } from "../../src/system/tenancy.ts";
import { readMetric } from "../../src/traffic/awaited-writes.ts";
import {
  byStatus,
  followStreams,
  streamsElsewhere,
  type TenantStreams,
} from "../../src/traffic/tenant-streams.ts";

/**
 * The plan's number of open streams. One edge never exceeds it. Several edges exceed it by no more than what opens on
 * them within the same moment.
 */
const slots = 25;
const fewerSlots = 10;
const atEachEdge = 100;
export const streamPlans = {
  some: { sse_connections: slots },
  fewer: { sse_connections: fewerSlots },
  two: { sse_connections: 2 },
};

export function describeStreamLimits(given: () => ClientSystem): void {
  let system: System;
  let streams: TenantStreams;
  beforeAll(() => {
    ({ system } = given());
  });
  afterEach(async () => {
    streams.close(streams.opened);
    await everyEdgeCounts(streams);
  });

  /** Opens streams of both kinds at all edges concurrently. */
  const storm = () =>
    Promise.all(
      system.edges.flatMap((edge) =>
        Array.from({ length: atEachEdge }, (_, index) =>
          streams.open(edge, index % 2 === 0 ? "values" : "ofrep"),
        ),
      ),
    );

  /** Opens as many streams as the plan allows, on one edge. */
  async function fill(): Promise<void> {
    const [edge] = system.edges as [Edge];
    const asked = await Promise.all(Array.from({ length: atEachEdge }, () => streams.open(edge)));
    expect(byStatus(asked)).toEqual({ 200: slots, 429: atEachEdge - slots });
  }

  it("accepts exactly the allowed number of a hundred concurrent streams on one edge, and then as many as become free anywhere", async () => {
    const { tenant } = await beginUsageStory(system, { name: "Storm", plan: "some" });
    streams = await followStreams(system, tenant);
    await fill();
    const [metering] = system.meterings;
    await eventually(async () => {
      const usage = await must(`${metering?.url}/api/v1/usage`, { key: tenant.serverKey });
      return usage.sse_connections.used === slots && usage.sse_connections.limit === slots;
    });
    const [, , , last] = system.edges as [Edge, Edge, Edge, Edge];
    const rejected = await eventually(async () => {
      const asked = await streams.open(last);
      return asked.status === 429 && asked;
    });
    expect(rejected.headers).toMatchObject({
      "ratelimit-policy": `"sse";q=${slots};qu="concurrent-requests"`,
      ratelimit: '"sse";r=0',
    });
    expect(rejected.headers).not.toHaveProperty("retry-after");

    const freed = [...streams.opened].slice(0, 5);
    streams.close(freed);
    for (const _ of freed)
      await eventually(async () => (await streams.open(last)).status === 200, {
        because: "a released slot is free",
      });
    expect((await streams.open(last)).status).toBe(429);
  });

  it("rejects every stream after a storm on all edges, until fewer than allowed are open", async () => {
    const { tenant } = await beginUsageStory(system, { name: "Storms", plan: "some" });
    streams = await followStreams(system, tenant);
    const asked = await storm();
    const { 200: opened = 0, ...rejected } = byStatus(asked);
    expect(opened).toBeGreaterThanOrEqual(slots);
    expect(opened).toBeLessThanOrEqual(system.edges.length * slots);
    expect(rejected).toEqual({ 429: asked.length - opened });
    await everyEdgeCounts(streams);
    await eventually(async () => (await usedSlots(tenant.serverKey)) === opened);
    expect(byStatus(await storm())).toEqual({ 429: asked.length });
    expect(streams.opened.size).toBe(opened);
    streams.close([...streams.opened].slice(0, opened - slots));
    await everyEdgeCounts(streams);
    await eventually(async () => (await usedSlots(tenant.serverKey)) === slots);
    expect(byStatus(await storm())).toEqual({ 429: asked.length });
    streams.close([...streams.opened].slice(0, 1));
    const [first] = system.edges as [Edge];
    await eventually(async () => (await streams.open(first)).status === 200);
    expect((await streams.open(first)).status).toBe(429);
  });

  it("never exceeds the limit of one edge while streams open and close, and accepts and rejects on all edges", async () => {
    const { tenant } = await beginUsageStory(system, { name: "Coming and going", plan: "fewer" });
    streams = await followStreams(system, tenant);
    const endsMs = performance.now() + 4_000;
    const statuses = new Set<number>();
    const most = new Map<Edge, number>();
    const openAndClose = async (edge: Edge) => {
      while (performance.now() < endsMs) {
        const stream = await streams.open(edge);
        statuses.add(stream.status);
        const open = [...streams.opened].filter((each) => each.edge === edge).length;
        most.set(edge, Math.max(open, most.get(edge) ?? 0));
        await delay(randomInt(100));
        streams.close([stream]);
      }
    };
    await Promise.all(
      system.edges.flatMap((edge) =>
        Array.from({ length: 2 * fewerSlots }, () => openAndClose(edge)),
      ),
    );
    expect(Math.max(...most.values())).toBeLessThanOrEqual(fewerSlots);
    expect([...statuses].toSorted()).toEqual([200, 429]);
  });

  it("closes nothing when the plan is lowered below the open streams, and opens nothing new", async () => {
    const story = await beginUsageStory(system, { name: "Lowered", plan: "some" });
    streams = await followStreams(system, story.tenant);
    await fill();
    const [first, second] = system.edges as [Edge, Edge];
    await story.changePlan("fewer");
    const tooMany = [...streams.opened].slice(0, slots - fewerSlots);
    await eventually(async () => {
      const { headers } = await streams.open(first);
      return headers["ratelimit-policy"]?.includes(`q=${fewerSlots};`);
    });
    expect(streams.opened.size).toBe(slots);
    streams.close(tooMany);
    await everyEdgeCounts(streams);
    await eventually(async () => (await usedSlots(story.tenant.serverKey)) === fewerSlots);
    expect((await streams.open(second)).status).toBe(429);
    streams.close([...streams.opened].slice(0, 1));
    await eventually(async () => (await streams.open(second)).status === 200);
    await story.changePlan("some");
    await eventually(async () => {
      await streams.open(first);
      return streams.opened.size === slots;
    });
    await eventually(async () => (await streams.open(second)).status === 429);
  });

  it("closes nothing while NATS is unavailable, uses the last counts, and counts all streams afterwards", async () => {
    const { tenant } = await beginUsageStory(system, { name: "NATS unavailable", plan: "two" });
    streams = await followStreams(system, tenant);
    const [first, second] = system.edges as [Edge, Edge];
    expect((await streams.open(first)).status).toBe(200);
    await everyEdgeCounts(streams);
    await eventually(async () => (await usedSlots(tenant.serverKey)) === 1);
    await system.nats.kill();
    for (const edge of [first, second]) {
      await eventually(async () => (await streams.open(edge)).status === 200);
      expect((await streams.open(edge)).status).toBe(429);
    }
    expect(streams.opened.size).toBe(3);
    await system.nats.start();
    await eventually(async () => (await usedSlots(tenant.serverKey)) === 3);
    await everyEdgeCounts(streams);
    for (const edge of [first, second]) expect((await streams.open(edge)).status).toBe(429);
    expect(streams.opened.size).toBe(3);
    streams.close([...streams.opened].slice(0, 2));
    await eventually(async () => (await streams.open(second)).status === 200);
    await everyEdgeCounts(streams);
    await eventually(async () => (await usedSlots(tenant.serverKey)) === 2);
    expect((await streams.open(first)).status).toBe(429);
  });

  /** Waits until each edge counts the open streams of the other edges. */
  async function everyEdgeCounts({ opened }: TenantStreams): Promise<void> {
    for (const edge of system.edges)
      await eventually(() => readMetric(edge.process, streamsElsewhere), {
        until: (count) => count === [...opened].filter((each) => each.edge !== edge).length,
        because: `${edge.name} counts the streams of the others`,
      });
  }

  async function usedSlots(key: string): Promise<number> {
    const [metering] = system.meterings;
    return (await must(`${metering?.url}/api/v1/usage`, { key })).sse_connections.used;
  }
}

import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { beforeAll, expect, it } from "@jest/globals";
import { beginUsageStory } from "../../src/stories/usage-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge, System } from "../../src/system/system.ts";
import { must } from "../../src/system/tenancy.ts";
import { byStatus, followStreams, type TenantStreams } from "../../src/traffic/tenant-streams.ts";

/** The plan's number of open streams, which is exact over all edges while NATS is available. */
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
  beforeAll(() => {
    ({ system } = given());
  });

  /** Opens streams of both kinds at all edges concurrently. */
  const storm = (streams: TenantStreams) =>
    Promise.all(
      system.edges.flatMap((edge) =>
        Array.from({ length: atEachEdge }, (_, index) =>
          streams.open(edge, index % 2 === 0 ? "values" : "ofrep"),
        ),
      ),
    );

  /**
   * Repeats the storm until every request was accepted or rejected. On a slow machine, edges may time out before they
   * know whether a slot is free. The number of accepted streams is then undefined.
   */
  async function answeredStorm(streams: TenantStreams, key: string) {
    return eventually(async () => {
      streams.close(streams.opened);
      await eventually(async () => (await usedSlots(key)) === 0);
      const asked = await storm(streams);
      return asked.every(({ status }) => status !== 503) && asked;
    });
  }

  it("accepts exactly the allowed number of hundreds of concurrent streams, and then as many as become free", async () => {
    const { tenant } = await beginUsageStory(system, { name: "Storm", plan: "some" });
    const streams = await followStreams(system, tenant);
    const asked = await answeredStorm(streams, tenant.serverKey);
    expect(byStatus(asked)).toEqual({ 200: slots, 429: 4 * atEachEdge - slots });
    const rejected = asked.find(({ status }) => status === 429);
    expect(rejected?.headers).toMatchObject({
      "ratelimit-policy": `"sse";q=${slots};qu="concurrent-requests"`,
      ratelimit: '"sse";r=0',
    });
    expect(rejected?.headers).not.toHaveProperty("retry-after");
    const [metering] = system.meterings;
    await eventually(async () => {
      const usage = await must(`${metering?.url}/api/v1/usage`, { key: tenant.serverKey });
      return usage.sse_connections.used === slots && usage.sse_connections.limit === slots;
    });

    const freed = [...streams.opened].slice(0, 5);
    streams.close(freed);
    const [, , , last] = system.edges as [Edge, Edge, Edge, Edge];
    for (const _ of freed)
      await eventually(async () => (await streams.open(last)).status === 200, {
        because: "a released slot is free",
      });
    expect((await streams.open(last)).status).toBe(429);
    streams.close(streams.opened);
    await eventually(async () => (await storm(streams)).every(({ status }) => status === 429));
    expect(streams.most()).toBe(slots);
    streams.close(streams.opened);
  });

  it("never exceeds the limit while streams open and close everywhere", async () => {
    const { tenant } = await beginUsageStory(system, { name: "Coming and going", plan: "fewer" });
    const streams = await followStreams(system, tenant);
    const endsMs = performance.now() + 4_000;
    const statuses = new Set<number>();
    const openAndClose = async (edge: Edge) => {
      while (performance.now() < endsMs) {
        const stream = await streams.open(edge);
        statuses.add(stream.status);
        await delay(randomInt(100));
        streams.close([stream]);
      }
    };
    await Promise.all(
      system.edges.flatMap((edge) => Array.from({ length: 8 }, () => openAndClose(edge))),
    );
    expect(streams.most()).toBe(fewerSlots);
    // An edge that does not learn in time whether a slot is free returns 503.
    statuses.delete(503);
    expect([...statuses].toSorted()).toEqual([200, 429]);
  });

  it("closes nothing when the plan is lowered below the open streams, and opens nothing new", async () => {
    const story = await beginUsageStory(system, { name: "Lowered", plan: "some" });
    const streams = await followStreams(system, story.tenant);
    await answeredStorm(streams, story.tenant.serverKey);
    expect(streams.opened.size).toBe(slots);
    const [first, second] = system.edges as [Edge, Edge];
    await story.changePlan("fewer");
    const tooMany = [...streams.opened].slice(0, slots - fewerSlots);
    await eventually(async () => {
      const { headers } = await streams.open(first);
      return headers["ratelimit-policy"]?.includes(`q=${fewerSlots};`);
    });
    expect(streams.opened.size).toBe(slots);
    streams.close(tooMany);
    await eventually(async () => (await usedSlots(story.tenant.serverKey)) === fewerSlots);
    expect((await streams.open(second)).status).toBe(429);
    streams.close([...streams.opened].slice(0, 1));
    await eventually(async () => (await streams.open(second)).status === 200);
    await story.changePlan("some");
    await eventually(async () => {
      await storm(streams);
      return streams.opened.size === slots;
    });
  });

  it("closes nothing while NATS is unavailable, uses the last counts, and counts all streams afterwards", async () => {
    const { tenant } = await beginUsageStory(system, { name: "NATS unavailable", plan: "two" });
    const streams = await followStreams(system, tenant);
    const [first, second] = system.edges as [Edge, Edge];
    expect((await streams.open(first)).status).toBe(200);
    await eventually(async () => (await usedSlots(tenant.serverKey)) === 1);
    await system.nats.kill();
    for (const edge of [first, second]) {
      await eventually(async () => (await streams.open(edge)).status === 200);
      expect((await streams.open(edge)).status).toBe(429);
    }
    expect(streams.opened.size).toBe(3);
    await system.nats.start();
    await eventually(async () => (await usedSlots(tenant.serverKey)) === 3);
    for (const edge of [first, second]) expect((await streams.open(edge)).status).toBe(429);
    expect(streams.opened.size).toBe(3);
    streams.close([...streams.opened].slice(0, 2));
    await eventually(async () => (await streams.open(second)).status === 200);
    expect((await streams.open(first)).status).toBe(429);
  });

  async function usedSlots(key: string): Promise<number> {
    const [metering] = system.meterings;
    return (await must(`${metering?.url}/api/v1/usage`, { key })).sse_connections.used;
  }
}

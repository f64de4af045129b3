import { eventually, openEventStream } from "@halyard/testing";
import { beforeAll, expect, it } from "@jest/globals";
import { faultsOfUsage } from "../../src/checks/usage-agreement.ts";
import { beginUsageStory } from "../../src/stories/usage-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { startReadyMetering } from "../../src/system/replicas.ts";
import type { Edge, System } from "../../src/system/system.ts";
import { must } from "../../src/system/tenancy.ts";
import { readMetric } from "../../src/traffic/awaited-writes.ts";
import { streamsElsewhere } from "../../src/traffic/tenant-streams.ts";

export function describeWithoutMetering(given: () => ClientSystem): void {
  let system: System;
  beforeAll(() => {
    ({ system } = given());
  });

  it("serves as usual, enforces the plan's streams, and is counted when the metering starts", async () => {
    const story = await beginUsageStory(system, { name: "Nobody counts", plan: "free" });
    const { tenant, flags, before } = story;
    const [first, second] = system.edges as [Edge, Edge];
    const traffic = story.ask({ kinds: story.kinds.filter(({ endpoint }) => !isStream(endpoint)) });
    await traffic.goesOn();
    const headers = { authorization: `Bearer ${tenant.clientKey}` };
    const path = "/api/v1/sdk/stream";
    const stream = await openEventStream(first.url + path, headers);
    system.endsWithSystem(async () => stream.close());
    expect(stream.status).toBe(200);
    await eventually(async () => (await readMetric(second.process, streamsElsewhere)) === 1);
    const rejected = await openEventStream(second.url + path, headers);
    system.endsWithSystem(async () => rejected.close());
    expect(rejected.status).toBe(429);
    const [management] = system.managements;
    const url = `${management?.url}/api/v1/flags/${flags[0]?.id}`;
    await must(url, { method: "PATCH", key: tenant.serverKey, body: { name: "Renamed" } });
    await must(url, { method: "PATCH", key: tenant.serverKey, body: { enabled: true } });
    await eventually(() => stream.events.some(({ data }) => JSON.stringify(data).includes("true")));
    await traffic.goesOn();
    await traffic.stop();
    stream.close();

    await startReadyMetering(system);
    const opened = {
      endpoint: "stream",
      environmentId: tenant.environmentId,
      evaluates: flags,
      status: 200,
      startedMs: 0,
      endedMs: 0,
    } as const;
    expect(await faultsOfUsage(system, tenant, [...before, ...traffic.sent, opened])).toEqual([]);
  });

  const isStream = (endpoint: string | undefined) => endpoint?.endsWith("stream") ?? false;
}

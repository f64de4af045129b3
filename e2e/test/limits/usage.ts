import { call, eventually, openEventStream, type ServiceProcess } from "@halyard/testing";
import { beforeAll, expect, it } from "@jest/globals";
import { awaitCounted, counted } from "../../src/checks/usage-agreement.ts";
import { beginUsageStory } from "../../src/stories/usage-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { killOne, startReadyMetering } from "../../src/system/replicas.ts";
import type { Edge, System } from "../../src/system/system.ts";
import { createTenant, must, operatorToken } from "../../src/system/tenancy.ts";
import { onThisMachine } from "../../src/traffic/promised-time.ts";

/** Tests usage and the limits of a plan, as customers experience them. */
const limit = 300;
/** Number of consecutive rejections that proves that the month is used up on every edge. */
const inARow = 100;
/** Documented overshoot: beyond the limit, all edges together accept at most the requests of this time. */
const overshootMs = 2_000;
/** Time after which every edge uses a changed plan, as documented. */
const planWithinMs = 1_000;
export const usagePlans = {
  small: { requests_per_month: limit },
  larger: { requests_per_month: 1_000_000 },
};

export function describeUsageLimits(given: () => ClientSystem): void {
  let system: System;
  let gateway: ServiceProcess;
  beforeAll(() => {
    ({ system, gateway } = given());
  });

  const flagsAt = (edge: Edge, key: string) => call(`${edge.url}/api/v1/sdk/flags`, { key });
  const statusesAt = async (key: string) =>
    Promise.all(system.edges.map(async (edge) => (await flagsAt(edge, key)).status));
  const everywhere = (status: number, key: string, withinMs?: number) =>
    eventually(async () => (await statusesAt(key)).every((each) => each === status), {
      because: `every edge returns ${status}`,
      ...(withinMs === undefined ? {} : { withinMs }),
    });

  it("ends a used-up month on every edge, and nothing else", async () => {
    const story = await beginUsageStory(system, { name: "Used up", plan: "small" });
    const { tenant, flags } = story;
    const headers = { authorization: `Bearer ${tenant.clientKey}` };
    const [first, ...others] = system.edges as [Edge, ...Edge[]];
    const open = await openEventStream(`${first.url}/api/v1/sdk/stream`, headers);
    system.endsWithSystem(async () => open.close());
    expect(open.headers["ratelimit-policy"]).toMatch(/^"monthly";q=300;w=\d+$/);

    const traffic = story.ask({ alsoExpected: [429] });
    await eventually(
      () => traffic.sent.length > limit && counted(traffic.sent.slice(-inARow)).length === 0,
      { withinMs: 60_000, because: "no request is accepted any more" },
    );
    await traffic.stop();
    const admitted = counted([...story.before, ...traffic.sent]).toSorted(
      (left, right) => left.endedMs - right.endedMs,
    );
    expect(traffic.complaints).toEqual([]);
    expect(admitted.length).toBeGreaterThanOrEqual(limit - 1);
    const usedUpMs = admitted[limit - 1]?.endedMs ?? 0;
    const lastMs = Math.max(...admitted.map(({ startedMs }) => startedMs));
    // A count takes a few steps until edges use it. On a busy machine, each step takes as long as a request.
    const took = traffic.sent.map(({ startedMs, endedMs }) => endedMs - startedMs);
    const ordinaryMs = took.toSorted((left, right) => left - right)[took.length >> 1] ?? 0;
    expect(lastMs - usedUpMs).toBeLessThan(overshootMs + 20 * ordinaryMs);

    const askedMs = Date.now();
    const rejected = await flagsAt(first, tenant.clientKey);
    const answeredMs = Date.now();
    expect(rejected.body.error).toMatchObject({ code: "RATE_001", status: 429 });
    const { start, end } = monthOf(new Date());
    const [, reset] = /^"monthly";r=0;t=(\d+)$/.exec(rejected.headers.get("ratelimit") ?? "") ?? [];
    const seconds = Number(reset);
    expect(seconds).toBeGreaterThanOrEqual(Math.floor((end - answeredMs) / 1_000));
    // The figures may be up to a second old.
    expect(seconds).toBeLessThanOrEqual(Math.ceil((end - askedMs) / 1_000) + 1);
    expect(rejected.headers.get("ratelimit-policy")).toBe(
      `"monthly";q=${limit};w=${(end - start) / 1_000}`,
    );
    expect(Number(rejected.headers.get("retry-after"))).toBe(Math.min(seconds, 600));
    for (const edge of others) {
      const stream = await openEventStream(`${edge.url}/api/v1/sdk/stream`, headers);
      stream.close();
      expect(stream.status).toBe(429);
    }
    const url = `${gateway.url}/api/v1/flags/${flags[0]?.id}`;
    await must(url, { method: "PATCH", key: tenant.serverKey, body: { enabled: true } });
    await eventually(() => JSON.stringify(open.events).includes('"checkout":true'), {
      because: "the open stream receives a change",
    });
    const used = await awaitCounted(system, tenant, { atLeast: admitted.length + 1 });
    expect(used).toBe(admitted.length + 1);
    const usage = await eventually(async () => {
      const shown = await must(`${gateway.url}/api/v1/usage`, { key: tenant.serverKey });
      return shown.sse_connections.used > 0 && shown;
    });
    open.close();
    expect(usage).toEqual({
      plan: "small",
      period: { start: new Date(start).toISOString(), end: new Date(end).toISOString() },
      requests: { used, limit },
      sse_connections: { used: 1, limit: null },
      projects: { used: 1, limit: null },
      configuration_bytes: { used: 0, limit: null },
    });
  });

  it("reports the last use of keys and flags, and the number of evaluations", async () => {
    const story = await beginUsageStory(system, { name: "Last seen" });
    const { tenant, flags } = story;
    const asOperator = { key: operatorToken };
    const asManager = { key: tenant.serverKey };
    const keys = (environmentId: string) =>
      `${gateway.url}/api/v1/projects/${tenant.projectId}/environments/${environmentId}/keys`;
    await eventually(
      async () => {
        const here = await must(keys(tenant.environmentId), asOperator);
        // The third key of the environment is not used.
        const used = here.keys.filter(
          (each: { environment_only: boolean }) => !each.environment_only,
        );
        const flagsSeen = await must(`${gateway.url}/api/v1/flags`, asManager);
        return (
          used.every((each: { last_used_at: string | null }) => isRecent(each.last_used_at)) &&
          flagsSeen.flags.every((each: { last_evaluated_at: string | null }) =>
            isRecent(each.last_evaluated_at),
          )
        );
      },
      { because: "keys and flags have a recent last use" },
    );
    const ofOtherEnvironment = await must(keys(tenant.otherEnvironmentId), asOperator);
    expect(ofOtherEnvironment.keys).toMatchObject([{ last_used_at: null }]);
    const seenElsewhere = await must(`${gateway.url}/api/v1/flags`, { key: tenant.otherServerKey });
    expect(seenElsewhere.flags[0]).toMatchObject({ last_evaluated_at: null });

    const [flag] = flags;
    const evaluations = story.before.filter(({ evaluates }) =>
      evaluates.some(({ id }) => id === flag?.id),
    ).length;
    const usage = await eventually(async () => {
      const url = `${gateway.url}/api/v1/flags/${flag?.id}/usage`;
      const shown = await must(url, asManager);
      return shown.environments[0].evaluations >= evaluations && shown;
    });
    expect(usage).toMatchObject({
      flag_id: flag?.id,
      hours: 24,
      environments: [
        { environment_id: tenant.environmentId, name: "production", evaluations },
        { name: "staging", last_evaluated_at: null, evaluations: 0, by_hour: [] },
      ],
    });
    const others = await createTenant(gateway.url, { name: "Others" });
    const url = `${gateway.url}/api/v1/flags/${flag?.id}/usage`;
    await eventually(async () => (await call(url, { key: others.serverKey })).status === 404);
  });

  it("counts evaluations that an application reports, once, even if it sends them to several edges", async () => {
    const { tenant, flags, before } = await beginUsageStory(system, { name: "Reports" });
    const [, flag] = flags;
    const at = (msAgo: number) => new Date(Date.now() - msAgo).toISOString();
    const report = {
      method: "POST",
      key: tenant.serverKey,
      headers: { "idempotency-key": "the report of a minute" },
      body: {
        period: { start: at(60_000), end: at(0) },
        flags: { [flag?.key ?? ""]: { true: 1_000, false: 1 }, unknown: { true: 5 } },
      },
    };
    for (const { url } of [gateway, ...system.edges])
      expect(await must(`${url}/api/v1/sdk/usage`, report)).toEqual({ accepted: true });
    const evaluations =
      1_001 + before.filter(({ evaluates }) => evaluates.some(({ id }) => id === flag?.id)).length;
    const url = `${gateway.url}/api/v1/flags/${flag?.id}`;
    await eventually(async () => {
      const { environments } = await must(`${url}/usage`, { key: tenant.serverKey });
      return environments[0].evaluations === evaluations;
    });
    await eventually(async () => {
      const { last_evaluated_at } = await must(url, { key: tenant.serverKey });
      return last_evaluated_at >= report.body.period.end;
    });
    const used = await awaitCounted(system, tenant, { atLeast: counted(before).length });
    expect(used).toBe(counted(before).length);
  });

  it("follows a change of the plan up and down, with the last known state if the metering is unavailable", async () => {
    const story = await beginUsageStory(system, { name: "Up and down", plan: "small" });
    const key = story.tenant.clientKey;
    const traffic = story.ask({ alsoExpected: [429] });
    await everywhere(429, key);
    await traffic.stop();
    const withinMs = await onThisMachine(planWithinMs, () => statusesAt(key));
    await story.changePlan("larger");
    await everywhere(200, key, withinMs);
    const { headers } = await flagsAt(system.edges[0] as Edge, key);
    expect(headers.get("ratelimit-policy")).toMatch(/^"monthly";q=1000000;/);
    await story.changePlan("small");
    await everywhere(429, key, withinMs);

    await killOne(system.meterings);
    const edge = system.edges.at(-1) as Edge;
    await edge.process.stop();
    await edge.start();
    await everywhere(429, key);
    await story.changePlan("larger");
    await everywhere(200, key);
    await story.changePlan("small");
    await everywhere(429, key);
    await startReadyMetering(system);
    await everywhere(429, key);
  });
}

const isRecent = (instant: string | null) =>
  instant !== null && Math.abs(Date.parse(instant) - Date.now()) < 60_000;

/** Returns a calendar month in UTC, in milliseconds. Its end is the start of the next month. */
function monthOf(date: Date): { start: number; end: number } {
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
}

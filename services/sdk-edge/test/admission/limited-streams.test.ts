import { defaultPlans } from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type StreamSlots, streamLimitReached } from "../../src/admission/stream-slots.ts";
import type { Snapshot } from "../../src/snapshot/snapshot.ts";
import { apiKey, flagEntry, id, organizationWith } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { streamAddress, tokenSecret } from "../http/ofrep/asking.ts";

/** Tests all kinds of streams with slots that the test grants. A server key opens all of them. */
const key = apiKey({ key_kind: "server" });
const monthly = defaultPlans.pro?.requests_per_month;
let edge: EdgeServer;
let slots: ReturnType<typeof slotsOf>;
const opened: EventStream[] = [];

beforeEach(async () => {
  slots = slotsOf(2);
  edge = await startEdgeServer([...organizationWith(), key.entry, flagEntry()], {
    streamTokenSecret: tokenSecret,
    slots: slots.slots,
    countsUsage: true,
  });
});
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await edge.stop();
});

const paths = {
  stream: "/api/v1/sdk/stream",
  ruleset_stream: "/api/v1/sdk/ruleset/stream?format=2",
};

describe.each([
  { kind: "of an SDK", endpoint: "stream" as const },
  { kind: "of rules", endpoint: "ruleset_stream" as const },
  { kind: "of an OpenFeature client", endpoint: "ofrep_stream" as const },
])("given a stream $kind", ({ endpoint }) => {
  const address = async () =>
    endpoint === "ofrep_stream" ? streamAddress(edge, key.text) : edge.url + paths[endpoint];
  const headers = { authorization: `Bearer ${key.text}` };
  const open = async () => {
    const stream = await openEventStream(await address(), headers);
    opened.push(stream);
    return stream;
  };
  const counted = () => {
    const [environment] = edge.counting?.take()?.environments ?? [];
    return environment?.requests[endpoint] ?? 0;
  };

  it("takes a slot, releases it when it closes, and counts once", async () => {
    const stream = await open();
    expect(stream.status).toBe(200);
    expect(stream.headers["ratelimit-policy"]).toContain(`"monthly";q=${monthly}`);
    expect(slots.taken).toBe(1);
    stream.close();
    await eventually(() => slots.taken === 0);
    expect(counted()).toBe(1);
  });

  it("is rejected with the limit of concurrent requests if no slot is free, and is not counted", async () => {
    slots.taken = 2;
    const rejected = await call(await address(), { key: key.text });
    expect(rejected.status).toBe(429);
    expect(rejected.body.error?.code ?? rejected.body.errorCode).toMatch(/^(RATE_001|GENERAL)$/);
    expect(rejected.body.error?.message ?? rejected.body.errorDetails).toBe(
      "All 2 streams that the organization's plan allows are open. Close one, or retry later. The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.",
    );
    expect(rejected.headers.get("ratelimit-policy")).toMatch(/^"sse";q=2;qu="concurrent-requests"/);
    expect(rejected.headers.get("ratelimit")).toMatch(/^"sse";r=0/);
    expect(rejected.headers.get("retry-after")).toBeNull();
    expect(rejected.headers.get("access-control-allow-origin")).toBe("*");
    expect(counted()).toBe(0);
    expect(await edge.metric(`sdk_responses_total{endpoint="${endpoint}",status="429"`)).toBe(1);
  });
});

describe("given a stream with an invalid user context", () => {
  it("takes no slot, and is counted like any request", async () => {
    const rejected = await call(`${edge.url}/api/v1/sdk/stream`, {
      key: key.text,
      headers: { "x-user-context": "{" },
    });
    expect(rejected.status).toBe(400);
    expect(slots.asked).toBe(0);
    const [environment] = edge.counting?.take()?.environments ?? [];
    expect(environment?.requests.stream).toBe(1);
  });
});

describe("given an edge that does not know the streams of the others yet", () => {
  beforeEach(() => {
    slots.knowsOthers = false;
  });

  it("is ready when it knows them", () => {
    expect(edge.edge.readiness()).toMatchObject({ ready: false, source: "nats" });
    slots.knowsOthers = true;
    expect(edge.edge.readiness()).toMatchObject({ ready: true });
  });

  it("is ready if it serves its cache without NATS, and stays ready when NATS is available", async () => {
    const starting = await startEdgeServer(undefined, { slots: slots.slots });
    const snapshot = edge.holder.snapshot as Snapshot;
    starting.holder.restore({ snapshot, currentAtMs: Date.now() });
    expect(starting.edge.readiness()).toMatchObject({ ready: true, source: "cache" });
    starting.holder.replace(id("epoch"), organizationWith());
    expect(starting.edge.readiness()).toMatchObject({ ready: true, source: "nats" });
    await starting.stop();
  });
});

describe("given a limit of zero or one", () => {
  it.each([
    [0, "The organization's plan allows no streams. "],
    [1, "The one stream that the organization's plan allows is open. Close it, or retry later. "],
  ])("returns a specific message for a limit of %i", (limit, words) => {
    expect(streamLimitReached(limit).message).toContain(words);
  });
});

function slotsOf(limit: number) {
  const state = { taken: 0, asked: 0, knowsOthers: true };
  const slots: StreamSlots = {
    take(organizationId) {
      expect(organizationId).toBe(id("org"));
      state.asked += 1;
      if (state.taken >= limit) return streamLimitReached(limit);
      state.taken += 1;
      return undefined;
    },
    release() {
      state.taken -= 1;
    },
    knowsOthers: () => state.knowsOthers,
  };
  return Object.assign(state, { slots });
}

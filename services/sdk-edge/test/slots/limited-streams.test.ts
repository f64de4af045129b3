import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";
import { defaultPlans } from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { StreamSlots } from "../../src/slots/stream-slots.ts";
import { streamLimitReached } from "../../src/slots/stream-slots.ts";
import { apiKey, flagEntry, id, organizationEntry } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { streamAddress, tokenSecret } from "../ofrep/asking.ts";

/** Tests all kinds of streams with slots that the test grants. A server key opens all of them. */
const key = apiKey({ key_kind: "server" });
const monthly = defaultPlans.pro?.requests_per_month;
let edge: EdgeServer;
let slots: ReturnType<typeof slotsOf>;
const opened: EventStream[] = [];

beforeEach(async () => {
  slots = slotsOf(2);
  edge = await startEdgeServer([organizationEntry(), key.entry, flagEntry()], {
    streamTokenSecret: tokenSecret,
    slots,
    countsUsage: true,
  });
});
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await edge.stop();
});

const paths = { stream: "/api/v1/sdk/stream", ruleset_stream: "/api/v1/sdk/ruleset/stream" };

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

  it("waits for the decision, and then opens", async () => {
    slots.keepWaiting = true;
    const opening = open();
    const decide = await eventually(() => slots.waiting.shift());
    decide();
    expect((await opening).status).toBe(200);
  });

  it("releases its slot if the client disconnects before the decision", async () => {
    slots.keepWaiting = true;
    const url = await address();
    const connected = once(edge.edge.app.server, "connection");
    const leaving = request(url, { headers, agent: false }).on("error", () => undefined);
    leaving.end();
    const [connection] = (await connected) as [Socket];
    const decide = await eventually(() => slots.waiting.shift());
    leaving.destroy();
    await eventually(() => connection.destroyed);
    decide();
    expect(slots.taken).toBe(0);
    expect(counted()).toBe(0);
  });

  it("does not open on an edge that starts to shut down while it waits", async () => {
    slots.keepWaiting = true;
    const opening = openEventStream(await address(), { ...headers, connection: "keep-alive" });
    const decide = await eventually(() => slots.waiting.shift());
    const draining = edge.edge.drain();
    decide();
    // Without this header, a gateway would forward the 503 instead of trying another edge.
    expect(await opening).toMatchObject({ status: 503, headers: { connection: "close" } });
    await eventually(() => slots.taken === 0);
    expect(counted()).toBe(0);
    await draining;
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

describe("given a limit of zero or one", () => {
  it.each([
    [0, "The organization's plan allows no streams. "],
    [1, "The one stream that the organization's plan allows is open. Close it, or retry later. "],
  ])("returns a specific message for a limit of %i", (limit, words) => {
    expect(streamLimitReached(limit).message).toContain(words);
  });
});

function slotsOf(limit: number) {
  const slots = {
    taken: 0,
    asked: 0,
    keepWaiting: false,
    waiting: [] as (() => void)[],
    take(organizationId: string, decided: Parameters<StreamSlots["take"]>[1]): void {
      expect(organizationId).toBe(id("org"));
      slots.asked += 1;
      const decide = () => {
        if (slots.taken >= limit) decided(streamLimitReached(limit));
        else {
          slots.taken += 1;
          decided(undefined);
        }
      };
      if (slots.keepWaiting) slots.waiting.push(decide);
      else decide();
    },
    release() {
      slots.taken -= 1;
    },
  };
  return slots satisfies StreamSlots;
}

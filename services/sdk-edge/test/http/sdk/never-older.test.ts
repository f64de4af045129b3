import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { apiKey, flagEntry, id } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { ask, listen } from "./asking.ts";

/**
 * Two edges behind one address. One of them receives a change before the other. Timers are fake, so that a waiting
 * request waits until the change arrives or the test advances the time.
 */
const server = apiKey({ key_kind: "server" });
let begunMs: number;
const state = (version: number) =>
  flagEntry({ version, committed_at: new Date(begunMs + version).toISOString() });
let early: EdgeServer;
let late: EdgeServer;
/** The tag of a change that only the early edge has. */
let tag: string;
let tagBefore: string;

beforeEach(async () => {
  begunMs = Date.now();
  jest.useFakeTimers({ doNotFake: ["Date", "nextTick", "queueMicrotask", "setImmediate"] });
  [early, late] = await Promise.all([
    startEdgeServer([server.entry, state(1)]),
    startEdgeServer([server.entry, state(1)], { countsUsage: true }),
  ]);
  tagBefore = await tagAt(early);
  await early.feed(state(2));
  tag = await tagAt(early);
});
afterEach(async () => {
  jest.useRealTimers();
  await Promise.all([early.stop(), late.stop()]);
});

const tagAt = async (edge: EdgeServer) => (await ask(edge, server.text)).headers.get("etag") ?? "";
const askLate = (held: string) => ask(late, server.text, { headers: { "if-none-match": held } });

/** Sends a request to the late edge, and resolves when it waits there. */
async function begin<T>(send: () => Promise<T>): Promise<{ answered: Promise<T> }> {
  const arrival = once(late.edge.app.server, "request") as Promise<[IncomingMessage]>;
  const answered = send();
  const [request] = await arrival;
  request.resume();
  await nextTurn();
  return { answered };
}

describe("given a client with rules that have not arrived at the edge", () => {
  it("receives the rules as soon as they have arrived", async () => {
    const { answered } = await begin(() => askLate(tag));
    await late.feed(state(2), state(3));
    const { status, body } = await answered;
    expect(status).toBe(200);
    expect(body.flags.checkout.version).toBe(3);
  });

  it("receives 304 when exactly its rules have arrived", async () => {
    const { answered } = await begin(() => askLate(tag));
    await late.feed(state(2));
    expect((await answered).status).toBe(304);
  });

  it("receives later rules after a second if its own never arrive", async () => {
    const { answered } = await begin(() => askLate(tag));
    await late.feed(state(3));
    jest.advanceTimersByTime(1_000);
    expect((await answered).body.flags.checkout.version).toBe(3);
  });

  it("receives 503 after a second, which is not counted", async () => {
    late.counting?.take();
    const { answered } = await begin(() => askLate(tag));
    jest.advanceTimersByTime(1_000);
    const { status, headers, body } = await answered;
    expect(status).toBe(503);
    expect(headers.get("retry-after")).toBe("1");
    expect(body.error.code).toBe("SERVER_002");
    expect(late.counting?.take()?.environments ?? []).toEqual([]);
  });

  it("receives 503 from an edge that is not current, however old its rules are", async () => {
    late.passTime(60_000);
    const { answered } = await begin(() => askLate(tag));
    jest.advanceTimersByTime(1_000);
    expect((await answered).status).toBe(503);
  });

  it("receives the rules of a current edge if the change should have arrived long ago", async () => {
    late.passTime(60_000);
    late.holder.confirmCurrent();
    const { answered } = await begin(() => askLate(tag));
    jest.advanceTimersByTime(1_000);
    const { status, body } = await answered;
    expect(status).toBe(200);
    expect(body.flags.checkout.version).toBe(1);
  });
});

describe("given a stream of a client with rules that have not arrived at the edge", () => {
  it("begins without an event when exactly its rules have arrived", async () => {
    const { answered } = await begin(() => listen(late, server.text, tag));
    await late.feed(state(2));
    const stream = await answered;
    const [first] = await eventually(() => stream.events.length > 0 && stream.events);
    stream.close();
    expect(first?.event).toBe("heartbeat");
  });

  it("begins with the difference when later rules have arrived", async () => {
    const { answered } = await begin(() => listen(late, server.text, tag));
    await late.feed(state(2), state(3));
    const stream = await answered;
    const [first] = await eventually(() => stream.events.length > 0 && stream.events);
    stream.close();
    expect(first?.data).toMatchObject({
      environment_id: id("env"),
      flags: { checkout: { version: 3 } },
    });
    expect(first?.data).not.toHaveProperty("full");
  });

  it("is rejected with 503 after a second", async () => {
    const { answered } = await begin(() => listen(late, server.text, tag));
    jest.advanceTimersByTime(1_000);
    const { status, headers } = await answered;
    expect(status).toBe(503);
    expect(headers["retry-after"]).toBe("1");
  });
});

describe("given a client with older rules", () => {
  it("receives the current rules immediately", async () => {
    await late.feed(state(2));
    // A waiting request would never be answered here, because the timers are fake.
    const { status, body } = await askLate(tagBefore);
    expect(status).toBe(200);
    expect(body.flags.checkout.version).toBe(2);
  });
});

import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { startFakeEdge, tagOf, valuesEvent } from "./support/fake-edge.ts";
import { closeClients, startClient } from "./support/started-client.ts";

/** A client whose edge, network and page fail. The tests move the clock. */
const edge = await startFakeEdge();
afterAll(() => edge.close());
beforeEach(() => {
  edge.setFlags({ checkout: false });
  edge.answer("stream", undefined);
  edge.answer("values", undefined);
  edge.requests.length = 0;
});
afterEach(closeClients);

const start = (options: Partial<Parameters<typeof startClient>[0]> = {}) =>
  startClient({ baseUrl: edge.url, ...options });
type Started = ReturnType<typeof start>;

const waits = ({ client }: Started) => eventually(() => client.status.connection === "waiting");
const has = ({ client }: Started, value: boolean) =>
  eventually(() => client.allFlags().checkout === value);
const routes = () => edge.requests.map(({ route }) => route);

describe("given a stream that ends", () => {
  it("reconnects after the time that the edge sent, without a full event", async () => {
    const started = start();
    await started.client.ready();
    edge.streams()[0]?.end();
    await waits(started);
    expect(started.clock.pending()).toContain(3_000);
    edge.setFlags({ checkout: true });
    started.clock.advance(3_000);
    await has(started, true);
    expect(edge.requests[1]?.headers["last-event-id"]).toBe(tagOf({ checkout: false }));
    expect(started.events).not.toContain("stale");
  });

  it("reconnects after a cut connection, and stays current if nothing has changed", async () => {
    const started = start();
    await started.client.ready();
    edge.streams()[0]?.cut();
    await waits(started);
    started.clock.advance(3_000);
    await eventually(() => started.client.status.connection === "streaming");
    expect(started.events).toEqual(["stream: checkout", "current"]);
  });

  it("reconnects after 45 s without a heartbeat", async () => {
    const started = start();
    await started.client.ready();
    edge.streams()[0]?.write('event: heartbeat\ndata: {"timestamp":2}\n\n');
    started.clock.advance(45_000);
    await waits(started);
    started.clock.advance(3_000);
    await eventually(() => edge.requests.length === 2);
  });
});

describe("given a stream with damaged events", () => {
  it.each([
    ["data that is no JSON", 'event: values\nid: "x"\ndata: {"values":{"checkout":tr\n\n'],
    ["values without variations", 'event: values\nid: "x"\ndata: {"values":{"checkout":true}}\n\n'],
    ["no id", 'event: values\ndata: {"values":{"checkout":true}}\n\n'],
  ])("reads all values again after an event with %s", async (_, text) => {
    const started = start();
    await started.client.ready();
    edge.streams()[0]?.write(text);
    await waits(started);
    expect(started.client.isEnabled("checkout")).toBe(false);
    edge.setFlags({ checkout: true });
    started.clock.advance(1_000);
    await has(started, true);
    expect(started.events).toContain("error: unavailable");
  });

  it("ignores a truncated event, unknown events and comments", async () => {
    const started = start();
    await started.client.ready();
    const [stream] = edge.streams();
    stream?.write(': a comment\n\nevent: news\nid: "n"\ndata: {}\n\n');
    stream?.write(valuesEvent('"t"', { flags: { checkout: true } }).slice(0, -1));
    stream?.end();
    await waits(started);
    expect(started.client.isEnabled("checkout")).toBe(false);
    started.clock.advance(3_000);
    await eventually(() => edge.requests.length === 2);
    expect(edge.requests[1]?.headers["last-event-id"]).toBe(tagOf({ checkout: false }));
  });
});

describe("given an edge that refuses streams", () => {
  it("polls each minute with the tag, and tries the stream again after about five minutes", async () => {
    edge.answer("stream", { status: 429, headers: { "retry-after": "30" } });
    const started = start();
    expect(await started.client.ready()).toBe(true);
    expect(started.client.status).toMatchObject({ source: "poll", current: true });
    for (let poll = 2; poll <= 5; poll += 1) {
      await waits(started);
      started.clock.advance(60_000);
      await eventually(() => edge.requests.length === poll + 1);
    }
    expect(edge.requests.at(-1)?.headers["if-none-match"]).toBe(tagOf({ checkout: false }));
    edge.answer("stream", undefined);
    await waits(started);
    started.clock.advance(60_000);
    await eventually(() => started.client.status.connection === "streaming");
    expect(routes()).toEqual(["stream", ...Array(5).fill("values"), "stream"]);
    expect(started.logged).toHaveLength(1);
  });

  it("polls if no event arrives within 5 s", async () => {
    edge.answer("stream", "hang");
    const started = start();
    await eventually(() => edge.requests.length === 1);
    started.clock.advance(5_000);
    await eventually(() => started.client.status.source === "poll");
    expect(started.events).toEqual(["error: streams_held_back", "poll: checkout", "current"]);
  });

  it("polls if the response is no event stream", async () => {
    edge.answer("stream", { status: 200, headers: { "content-type": "text/html" } });
    const started = start();
    expect(await started.client.ready()).toBe(true);
    expect(started.client.status.source).toBe("poll");
  });

  it("tries the stream again within seconds after a 503", async () => {
    edge.answer("stream", { status: 503, headers: { "retry-after": "1" } });
    const started = start();
    await started.client.ready();
    edge.answer("stream", undefined);
    await waits(started);
    started.clock.advance(2_000);
    await eventually(() => started.client.status.connection === "streaming");
  });
});

describe("given an edge that cannot be reached", () => {
  it("keeps its values, is stale, and is current again without a change", async () => {
    const started = start();
    await started.client.ready();
    edge.answer("stream", { status: 503 });
    edge.answer("values", { status: 503 });
    edge.streams()[0]?.cut();
    await waits(started);
    started.clock.advance(3_000);
    await eventually(() => started.events.includes("stale"));
    expect(started.client.isEnabled("checkout", true)).toBe(false);
    expect(started.client.status.current).toBe(false);
    edge.answer("stream", undefined);
    edge.answer("values", undefined);
    await waits(started);
    started.clock.advance(30_000);
    await eventually(() => started.events.at(-1) === "current");
    expect(started.events.filter((event) => event.startsWith("stream"))).toHaveLength(1);
  });

  it("honors Retry-After", async () => {
    edge.answer("stream", { status: 503 });
    edge.answer("values", { status: 429, headers: { "retry-after": "600" } });
    const started = start();
    await waits(started);
    expect(started.clock.pending()).toContain(600_000);
  });

  it("resolves ready with false after the time", async () => {
    edge.answer("stream", "hang");
    const { client, clock } = start();
    const ready = client.ready({ timeoutMs: 100 });
    clock.advance(100);
    expect(await ready).toBe(false);
  });

  it("logs one line for a base address without a server, and throws nothing", async () => {
    const started = start({ baseUrl: "http://127.0.0.1:9" });
    for (let round = 0; round < 6; round += 1) {
      await waits(started);
      started.clock.advance(30_000);
      await eventually(() => started.events.length > round + 1);
    }
    expect(started.client.isEnabled("checkout", true)).toBe(true);
    expect(started.logged).toEqual([expect.stringContaining("http://127.0.0.1:9")]);
  });
});

describe("given a rejected key", () => {
  it("stops with one error, and keeps its values", async () => {
    const started = start();
    await started.client.ready();
    edge.answer("stream", { status: 401 });
    edge.streams()[0]?.end();
    await waits(started);
    started.clock.advance(3_000);
    await eventually(() => started.client.status.connection === "stopped");
    started.clock.advance(3_600_000);
    expect(started.events.slice(2)).toEqual(["stale", "error: unauthorized"]);
    expect(started.client.isEnabled("checkout", true)).toBe(false);
    expect(await started.client.ready()).toBe(false);
    expect(started.logged).toEqual([expect.stringContaining("Status 401")]);
    expect(edge.requests).toHaveLength(2);
  });

  it("resolves ready with false as soon as it has stopped", async () => {
    edge.answer("stream", { status: 401 });
    expect(await start().client.ready()).toBe(false);
  });
});

describe("given invalid options", () => {
  it.each([
    ["no options", undefined, "Invalid `baseUrl`"],
    ["no base address", { baseUrl: undefined, clientKey: "hc_a_b" }, "Invalid `baseUrl`"],
    ["a base address without a scheme", { baseUrl: "flags.example.com" }, "Invalid `baseUrl`"],
    ["no key", { baseUrl: "http://127.0.0.1", clientKey: undefined }, "Invalid `clientKey`"],
    ["a server key", { baseUrl: "http://127.0.0.1", clientKey: "hs_a_b" }, "a server key"],
    ["a key with a line break", { baseUrl: "http://127.0.0.1", clientKey: "hc_a_b\n" }, "hc_"],
  ])("answers with fallbacks and logs one line for %s", async (_, options, line) => {
    const { client, logged } = start(options === undefined ? { baseUrl: "" } : (options as never));
    expect(client.isEnabled("checkout", true)).toBe(true);
    expect(await client.ready()).toBe(false);
    expect(await client.setContext({ id: "ada" })).toBe(false);
    expect(client.status.connection).toBe("stopped");
    expect(logged).toEqual([expect.stringContaining(line)]);
    expect(edge.requests).toEqual([]);
  });
});

describe("given a page", () => {
  it("disconnects after five hidden minutes, and reconnects when it is visible", async () => {
    const started = start();
    await started.client.ready();
    started.page.show("hidden");
    started.clock.advance(30_000);
    edge.streams()[0]?.write('event: heartbeat\ndata: {"timestamp":2}\n\n');
    expect(started.client.status.connection).toBe("streaming");
    started.page.dispatchEvent(new Event("pagehide"));
    await eventually(() => edge.streams().length === 0);
    expect(started.client.status).toMatchObject({ connection: "paused", current: false });
    edge.setFlags({ checkout: true });
    started.page.show("visible");
    await has(started, true);
    expect(started.events).toContain("stale");
  });

  it("keeps the connection if it was hidden for a short time", async () => {
    const started = start();
    await started.client.ready();
    started.page.show("hidden");
    started.clock.advance(10_000);
    started.page.show("visible");
    started.clock.advance(10_000);
    expect(edge.requests).toHaveLength(1);
    expect(edge.streams()).toHaveLength(1);
  });

  it("pauses after five hidden minutes", async () => {
    edge.answer("stream", { status: 429 });
    const started = start();
    await started.client.ready();
    await waits(started);
    started.page.show("hidden");
    for (let minute = 0; minute < 5; minute += 1) {
      await waits(started);
      started.clock.advance(60_000);
      await eventually(() => started.client.status.connection !== "polling");
    }
    expect(started.client.status.connection).toBe("paused");
    const { length } = edge.requests;
    started.clock.advance(600_000);
    expect(edge.requests).toHaveLength(length);
  });

  it.each(["online", "offline"])("reconnects at the event %s", async (name) => {
    const started = start();
    await started.client.ready();
    started.page.dispatchEvent(new Event(name));
    await eventually(() => edge.requests.length === 2);
    await eventually(() => edge.streams().length === 1);
  });

  it("ends a wait when the network is available again", async () => {
    edge.answer("stream", { status: 503 });
    edge.answer("values", { status: 503 });
    const started = start();
    await waits(started);
    edge.answer("stream", undefined);
    started.page.dispatchEvent(new Event("online"));
    expect(await started.client.ready()).toBe(true);
  });
});

import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { startFakeEdge } from "./support/fake-edge.ts";
import { closeClients, createMemoryStorage, startClient } from "./support/started-client.ts";

/** The values of a client over real HTTP, with a clock that the tests move. */
const edge = await startFakeEdge();
afterAll(() => edge.close());
beforeEach(() => {
  edge.answer("stream", undefined);
  edge.answer("values", undefined);
  edge.setFlags({ checkout: true, search: false });
  edge.requests.length = 0;
});
afterEach(closeClients);

const start = (options: Partial<Parameters<typeof startClient>[0]> = {}) =>
  startClient({ baseUrl: edge.url, ...options });

describe("given a stream", () => {
  it("has all values when it is ready", async () => {
    const { client, events } = start();
    expect(await client.ready()).toBe(true);
    expect(client.allFlags()).toEqual({ checkout: true, search: false });
    expect(client.isEnabled("checkout")).toBe(true);
    expect(client.isEnabled("search", true)).toBe(false);
    expect(client.status).toMatchObject({
      source: "stream",
      current: true,
      connection: "streaming",
    });
    expect(events).toEqual(["stream: checkout,search", "current"]);
  });

  it("applies changed, added and removed flags, and emits their keys", async () => {
    const { client, events } = start();
    await client.ready();
    const before = client.allFlags();
    edge.setFlags({ search: true, banner: false });
    await eventually(() => client.isEnabled("search"));
    expect(client.allFlags()).toEqual({ search: true, banner: false });
    expect(before).toEqual({ checkout: true, search: false });
    expect(events.at(-1)).toBe("stream: checkout,search,banner");
  });

  it("returns the same object until a value changes", async () => {
    const { client } = start();
    await client.ready();
    expect(client.allFlags()).toBe(client.allFlags());
    expect(Object.isFrozen(client.allFlags())).toBe(true);
  });

  it("returns the fallback for an unknown flag, and logs that once", async () => {
    const { client, logged } = start();
    await client.ready();
    expect(client.isEnabled("missing")).toBe(false);
    expect(client.isEnabled("missing", true)).toBe(true);
    expect(client.isEnabled("constructor")).toBe(false);
    expect(client.isEnabled(undefined as never, true)).toBe(true);
    expect(logged).toEqual(['Halyard: No flag "missing"; the fallback applies.']);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("a bug");
      },
    ],
    ["rejects", () => Promise.reject(new Error("a bug"))],
  ])("calls the other listeners if one %s, and logs that", async (_, listener: () => unknown) => {
    const { client, logged } = start();
    const calls: string[] = [];
    client.on("change", listener);
    client.on("change", () => void calls.push("called"));
    await client.ready();
    expect(calls).toEqual(["called"]);
    await eventually(() => logged.length > 0);
    expect(logged).toEqual(['Halyard: A listener of "change" has thrown: Error: a bug']);
  });

  it("does not call a listener that was removed", async () => {
    const { client } = start();
    const calls: string[] = [];
    const listener = () => void calls.push("called");
    const remove = client.on("current", listener);
    client.on("change", listener);
    remove();
    client.off("change", listener);
    await client.ready();
    expect(calls).toEqual([]);
  });
});

describe("given a context", () => {
  it("sends it, with characters of any language", async () => {
    const { client } = start({
      context: { id: "jörg", city: "東京 🗼", plan: ["a", "b"], beta: true, age: 42 },
    });
    await client.ready();
    expect(edge.requests[0]?.context).toEqual({
      ...{ age: 42, beta: true, city: "東京 🗼", id: "jörg", plan: ["a", "b"] },
    });
  });

  it("polls with a context that is too large for a header", async () => {
    const bio = "ä".repeat(5_000);
    const { client, clock } = start({ context: { id: "u1", bio } });
    expect(await client.ready()).toBe(true);
    expect(client.status.source).toBe("poll");
    edge.setFlags({ checkout: false });
    await eventually(() => client.status.connection === "waiting");
    clock.advance(66_000);
    await eventually(() => !client.isEnabled("checkout", true));
    expect(edge.requests.map(({ route }) => route)).toEqual(["values", "values"]);
    expect(edge.requests[1]?.context).toEqual({ id: "u1", bio });
  });

  it("ignores invalid attributes, and logs that once", async () => {
    const invalid = { id: {}, user_id: "u1", nested: { a: 1 }, list: [1, {}], none: null, big: 1n };
    const { client, logged } = start({ context: invalid as never });
    await client.ready();
    await client.setContext("a text" as never);
    expect(edge.requests.map(({ context }) => context)).toEqual([{ user_id: "u1", list: [1] }, {}]);
    expect(logged).toHaveLength(1);
  });
});

describe("given another user", () => {
  beforeEach(() => edge.setFlags(({ id }) => ({ admin: id === "ada", [`of-${id}`]: true })));

  it("switches all values together", async () => {
    const { client, events } = start({ context: { id: "ada" } });
    await client.ready();
    expect(await client.setContext({ id: "bob" })).toBe(true);
    expect(client.allFlags()).toEqual({ admin: false, "of-bob": true });
    expect(events.filter((event) => event.startsWith("stream"))).toEqual([
      "stream: admin,of-ada",
      "stream: admin,of-ada,of-bob",
    ]);
  });

  it("drops a response for the earlier user that arrives late", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    edge.answer("stream", () => held);
    const { client } = start({ context: { id: "ada" } });
    await eventually(() => edge.requests.length === 1);
    edge.answer("stream", undefined);
    const switched = client.setContext({ id: "bob" });
    release();
    expect(await switched).toBe(true);
    expect(client.allFlags()).toEqual({ admin: false, "of-bob": true });
  });

  it("ignores a 304 for values that it does not have, instead of those of another user", async () => {
    edge.setFlags(({ id }) => ({ checkout: id === "ada" }));
    const { client, clock } = start({ context: { id: "ada" } });
    await client.ready();
    edge.answer("stream", { status: 429 });
    edge.answer("values", { status: 304 });
    const switched = client.setContext({ id: "bob" });
    await eventually(() => edge.requests.length === 3);
    await eventually(() => client.status.connection === "waiting");
    clock.advance(5_000);
    expect(await switched).toBe(false);
    expect(client.status).toMatchObject({ source: "none", current: false });
  });

  it("requests the values of the other user without the tag of the earlier one", async () => {
    const { client } = start({ context: { id: "ada" } });
    await client.ready();
    edge.answer("stream", { status: 429 });
    expect(await client.setContext({ id: "bob" })).toBe(true);
    const [, stream, poll] = edge.requests;
    expect(stream).toMatchObject({ route: "stream", context: { id: "bob" } });
    expect(stream?.headers).not.toHaveProperty("last-event-id");
    expect(poll).toMatchObject({ route: "values", context: { id: "bob" } });
    expect(poll?.headers).not.toHaveProperty("if-none-match");
  });

  it("lets only the last of several switches succeed", async () => {
    const { client } = start({ context: { id: "ada" } });
    const outcomes = [client.setContext({ id: "bob" }), client.setContext({ id: "eve" })];
    expect(await Promise.all(outcomes)).toEqual([false, true]);
    expect(client.allFlags()).toEqual({ admin: false, "of-eve": true });
  });

  it("keeps the earlier values for 5 s without an answer, and then applies fallbacks", async () => {
    const { client, clock } = start({ context: { id: "ada" } });
    await client.ready();
    edge.answer("stream", "hang");
    edge.answer("values", "hang");
    const switched = client.setContext({ id: "bob" });
    expect(client.isEnabled("admin")).toBe(true);
    clock.advance(5_000);
    expect(await switched).toBe(false);
    expect(client.allFlags()).toEqual({});
  });

  it("does not connect again for an equal context", async () => {
    const { client } = start({ context: { id: "ada", plan: "pro" } });
    await client.ready();
    expect(await client.setContext({ plan: "pro", id: "ada" })).toBe(true);
    expect(edge.requests).toHaveLength(1);
  });

  it("has consistent values if a listener switches the user", async () => {
    const { client } = start({ context: { id: "ada" } });
    const unsubscribe = client.on("change", () => {
      unsubscribe();
      void client.setContext({ id: "bob" });
    });
    expect(await client.ready()).toBe(true);
    expect(client.allFlags()).toEqual({ admin: false, "of-bob": true });
  });
});

describe("given a storage", () => {
  it("starts with the last values of the same user, and never stores the context", async () => {
    const storage = createMemoryStorage();
    const first = start({ storage, context: { id: "ada@example.com" } });
    await first.client.ready();
    first.client.close();
    edge.answer("stream", { status: 503 });
    edge.answer("values", { status: 503 });
    const second = start({ storage, context: { id: "ada@example.com" } });
    expect(second.client.allFlags()).toEqual({ checkout: true, search: false });
    expect(second.client.status).toMatchObject({ source: "cache", current: false });
    expect(start({ storage, context: { id: "bob" } }).client.allFlags()).toEqual({});
    expect(storage.text()).not.toMatch(/ada|example|abcdefghijklmnop|127\.0\.0\.1/);
  });

  it("confirms stored values without a full event", async () => {
    const storage = createMemoryStorage();
    const first = start({ storage });
    await first.client.ready();
    const { events, client } = start({ storage });
    expect(await client.ready()).toBe(true);
    expect(events).toEqual(["current"]);
    expect(client.status.source).toBe("stream");
  });

  it("keeps the values of the last five users", async () => {
    const storage = createMemoryStorage();
    const { client } = start({ storage, context: { id: "user 0" } });
    await client.ready();
    for (let user = 1; user <= 6; user += 1) await client.setContext({ id: `user ${user}` });
    expect(JSON.parse(storage.getItem("halyard") ?? "")).toHaveLength(5);
  });

  it.each([
    ["damaged", "{"],
    ["of another program", '{"a":1}'],
    ["of the wrong shape", '[["x",{"checkout":"yes"},null],null,3]'],
  ])("ignores stored data that is %s", async (_, text) => {
    const storage = createMemoryStorage();
    storage.setItem("halyard", text);
    const { client, logged } = start({ storage });
    expect(client.allFlags()).toEqual({});
    expect(await client.ready()).toBe(true);
    expect(logged).toEqual([]);
  });

  it("works with a full storage, and logs the reason once", async () => {
    const storage = {
      getItem: () => null,
      setItem() {
        throw new Error("QuotaExceededError");
      },
    };
    const { client, logged } = start({ storage });
    await client.ready();
    edge.setFlags({ checkout: false });
    await eventually(() => !client.isEnabled("checkout", true));
    expect(logged).toEqual(["Halyard: The values cannot be stored: Error: QuotaExceededError"]);
  });
});

describe("given bootstrapped values", () => {
  it("starts with them, and then has those of the edge", async () => {
    const { client } = start({ bootstrap: { checkout: false, legacy: true } });
    expect(client.status.source).toBe("bootstrap");
    expect(client.allFlags()).toEqual({ checkout: false, legacy: true });
    await client.ready();
    expect(client.allFlags()).toEqual({ checkout: true, search: false });
  });

  it("sends nothing before connect is called with autoConnect: false", async () => {
    const { client } = start({ autoConnect: false, bootstrap: { checkout: false } });
    expect(client.status.connection).toBe("idle");
    expect(await client.setContext({ id: "ada" })).toBe(false);
    client.connect();
    expect(await client.ready()).toBe(true);
    expect(edge.requests).toMatchObject([{ context: { id: "ada" } }]);
  });

  it("connects again after close", async () => {
    const { client } = start();
    await client.ready();
    client.close();
    await eventually(() => edge.streams().length === 0);
    expect(client.isEnabled("checkout")).toBe(true);
    client.connect();
    expect(await client.ready()).toBe(true);
    expect(edge.streams()).toHaveLength(1);
  });
});

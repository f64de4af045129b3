import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { startFakeEdge } from "./support/fake-edge.ts";
import { closeClients, createMemoryStorage, startClient } from "./support/started-client.ts";

/** Flags with text, numbers and objects over real HTTP. */
const edge = await startFakeEdge();
afterAll(() => edge.close());

const blue = { value: "blue", variation: "cold" };
const half = { value: 0.5, variation: "half" };
const limits = { value: { seats: 5, regions: ["eu", { name: "us" }] }, variation: "small" };
const callersDefault = { value: null, variation: null };
const flags = { checkout: true, color: blue, ratio: half, limits, later: callersDefault };

beforeEach(() => {
  edge.answer("stream", undefined);
  edge.answer("values", undefined);
  edge.setFlags(flags);
});
afterEach(closeClients);

const start = (options: Partial<Parameters<typeof startClient>[0]> = {}) =>
  startClient({ baseUrl: edge.url, ...options });

async function startReady(options?: Parameters<typeof start>[0]) {
  const started = start(options);
  await started.client.ready();
  return started;
}

describe.each([
  ["streams", undefined],
  ["polls", { status: 429 }],
])("given a client that %s", (_, streams) => {
  it("returns values in the type of their flag", async () => {
    edge.answer("stream", streams);
    const { client } = await startReady();
    expect(client.isEnabled("checkout")).toBe(true);
    expect(client.getString("color", "red")).toBe("blue");
    expect(client.getNumber("ratio", 1)).toBe(0.5);
    expect(client.getObject("limits", {})).toEqual(limits.value);
  });
});

describe("given values of every type", () => {
  it("returns details with the variation", async () => {
    const { client } = await startReady();
    expect(client.details("checkout", false)).toEqual({ value: true, variation: "on" });
    expect(client.details("color", "red")).toEqual(blue);
    expect(client.details("ratio", 1)).toEqual(half);
    expect(client.details("limits", {})).toEqual(limits);
  });

  it("returns all of them with their variations, and apart from that the boolean ones", async () => {
    const { client } = await startReady();
    const on = { value: true, variation: "on" };
    expect(client.allValues()).toEqual({ ...flags, checkout: on });
    expect(client.allFlags()).toEqual({ checkout: true });
  });

  it("freezes objects to every depth", async () => {
    const { client } = await startReady();
    const value = client.getObject("limits", limits.value);
    for (const part of [client.allValues(), value, value.regions, value.regions[1]])
      expect(Object.isFrozen(part)).toBe(true);
  });

  it("keeps `__proto__` in objects as a member", async () => {
    const value = JSON.parse('{"__proto__":{"admin":true}}');
    edge.setFlags({ hostile: { value, variation: "a" } });
    const { client } = await startReady();
    const found = client.getObject<Record<string, unknown>>("hostile", {});
    expect(JSON.stringify(found)).toBe('{"__proto__":{"admin":true}}');
    expect(found.admin).toBeUndefined();
  });

  it.each([0.1, 1e-21, 5e-324, 2 ** 53 - 1, 1.7976931348623157e308])(
    "returns the number %d exactly",
    async (value) => {
      edge.setFlags({ number: { value, variation: "a" } });
      const { client } = await startReady();
      expect(client.getNumber("number", 0)).toBe(value);
    },
  );
});

describe("given a flag that leaves the value to the application", () => {
  it("returns the fallback of each type, without an error", async () => {
    const { client, logged } = await startReady();
    const fallback = { seats: 1 };
    expect(client.isEnabled("later", true)).toBe(true);
    expect(client.getString("later", "red")).toBe("red");
    expect(client.getNumber("later", 1)).toBe(1);
    expect(client.getObject("later", fallback)).toBe(fallback);
    expect(client.details("later", "red")).toEqual({ value: "red", variation: null });
    expect(logged).toEqual([]);
  });
});

describe("given a flag of another type", () => {
  const fallbacks = { boolean: true, string: "text", number: 7, object: { a: 1 } };
  const keys = { boolean: "checkout", string: "color", number: "ratio", object: "limits" };
  type Type = keyof typeof keys;
  const types = Object.keys(keys) as Type[];
  const pairs = types.flatMap((type) =>
    types.filter((other) => other !== type).map((other) => [type, other] as const),
  );

  it.each(pairs)("returns the fallback for a %s flag that is read as %s", async (type, asked) => {
    const { client, logged } = await startReady();
    const key = keys[type];
    const fallback = fallbacks[asked];
    const readers = {
      boolean: () => client.isEnabled(key, fallbacks.boolean),
      string: () => client.getString(key, fallbacks.string),
      number: () => client.getNumber(key, fallbacks.number),
      object: () => client.getObject(key, fallbacks.object),
    };
    expect(readers[asked]()).toBe(fallback);
    expect(client.details(key, fallback)).toEqual({
      ...{ value: fallback, variation: null, error: "TYPE_MISMATCH" },
    });
    expect(logged).toEqual([`Halyard: Flag "${key}" has the type ${type}; the fallback applies.`]);
  });

  it("logs one line for each flag", async () => {
    const { client, logged } = await startReady();
    for (const key of ["color", "ratio", "color"]) {
      client.isEnabled(key);
      client.getObject(key, {});
    }
    expect(logged).toHaveLength(2);
  });
});

describe("given a flag that is unknown", () => {
  it("returns the fallback with an error", async () => {
    const { client } = await startReady();
    for (const key of ["missing", "__proto__", "constructor"])
      expect(client.details(key, "red")).toEqual({
        ...{ value: "red", variation: null, error: "FLAG_NOT_FOUND" },
      });
  });
});

describe("given a number that is read as an integer", () => {
  it.each([5, 0, -3, 1e3, 2 ** 53 - 1, -(2 ** 53) + 1])("returns %d", async (value) => {
    edge.setFlags({ number: { value, variation: "a" } });
    const { client } = await startReady();
    expect(client.getInteger("number", 42)).toBe(value);
  });

  it.each([0.5, 2 ** 53, -(2 ** 53), 1e21])("returns the fallback for %d", async (value) => {
    edge.setFlags({ number: { value, variation: "a" } });
    const { client, logged } = await startReady();
    expect(client.getInteger("number", 42)).toBe(42);
    expect(logged).toHaveLength(1);
  });
});

describe("given a change", () => {
  it.each([
    ["a value changes", { value: "navy", variation: "cold" }],
    ["only the variation changes", { value: "blue", variation: "winter" }],
    ["the flag leaves the value to the application", callersDefault],
  ])("emits the key if %s", async (_, color) => {
    const { client, events } = await startReady();
    edge.setFlags({ ...flags, color });
    await eventually(() => events.at(-1) === "stream: color");
    expect(client.allValues().color).toEqual(color);
  });

  it("emits nothing for an equal object, and keeps it", async () => {
    const { client, events } = await startReady();
    const before = client.getObject("limits", {});
    client.close();
    edge.answer("stream", { status: 429 });
    edge.setFlags({ ...flags, color: { value: "navy", variation: "cold" } });
    // A poll has all values.
    client.connect();
    await client.ready();
    expect(events.at(-2)).toBe("poll: color");
    expect(client.getObject("limits", {})).toBe(before);
  });
});

describe("given a storage", () => {
  it("starts with the values and variations of the last page", async () => {
    const storage = createMemoryStorage();
    const first = await startReady({ storage });
    first.client.close();
    edge.answer("stream", "hang");
    const { client } = start({ storage });
    expect(client.status.source).toBe("cache");
    expect(client.allValues()).toEqual(first.client.allValues());
    expect(Object.isFrozen(client.getObject("limits", limits.value).regions)).toBe(true);
  });

  it("keeps only the values of the current user if those of several users are too large", async () => {
    const storage = createMemoryStorage();
    const bounded = {
      ...storage,
      setItem(name: string, text: string) {
        if (text.length > 1_000) throw new Error("QuotaExceededError");
        storage.setItem(name, text);
      },
    };
    edge.setFlags(({ id }) => ({ color: { value: `${id}`.padEnd(600), variation: "long" } }));
    const { client, logged } = await startReady({ storage: bounded, context: { id: "ada" } });
    await client.setContext({ id: "bob" });
    expect(storage.text()).not.toContain("ada");
    expect(storage.text()).toContain("bob");
    expect(logged).toEqual([]);
  });

  it("ignores values of a release that stored only booleans", async () => {
    const storage = createMemoryStorage();
    const first = await startReady({ storage });
    first.client.close();
    const [[id, , tag]] = JSON.parse(storage.getItem("halyard") ?? "");
    storage.setItem("halyard", JSON.stringify([[id, { checkout: true, color: true }, tag]]));
    edge.requests.length = 0;
    const { client } = start({ storage });
    expect(client.status.source).toBe("none");
    expect(client.allValues()).toEqual({});
    await client.ready();
    expect(edge.requests[0]?.headers).not.toHaveProperty("last-event-id");
    expect(client.getString("color", "red")).toBe("blue");
  });
});

describe("given bootstrapped values", () => {
  const idle = (bootstrap: object) => start({ autoConnect: false, bootstrap } as object).client;

  it("returns them with their variations", () => {
    const client = idle({ checkout: true, color: blue, limits });
    expect(client.details("checkout", false)).toEqual({ value: true, variation: "on" });
    expect(client.details("color", "red")).toEqual(blue);
    expect(client.getObject("limits", {})).toEqual(limits.value);
    expect(client.bootstrap).toEqual(client.allValues());
  });

  it("accepts the values of another client, and reports no change when the edge has equal ones", async () => {
    const first = await startReady();
    const { client, events } = start({ bootstrap: first.client.allValues() });
    await client.ready();
    expect(events).toEqual(["current"]);
  });

  it("takes a text or a number for a variation of this name", () => {
    const client = idle({ color: "blue", ratio: 0.5 });
    expect(client.details("color", "red")).toEqual({ value: "blue", variation: "blue" });
    expect(client.details("ratio", 1)).toEqual({ value: 0.5, variation: "0.5" });
  });

  it("copies them, so that the application can change its objects", () => {
    const given = { limits: { value: { seats: 5 }, variation: "small" } };
    const client = idle(given);
    given.limits.value.seats = 6;
    expect(client.getObject("limits", { seats: 0 })).toEqual({ seats: 5 });
  });

  it("ignores entries without a variation, with one warning for each, and keeps the others", () => {
    const bootstrap = { color: blue, limits: { seats: 5 }, list: [1], empty: null };
    const { client, logged } = start({ autoConnect: false, bootstrap } as object);
    expect(client.allValues()).toEqual({ color: blue });
    expect(logged).toEqual(
      ["limits", "list", "empty"].map(
        (key) => `Halyard: No variation of "${key}"; the fallback applies.`,
      ),
    );
  });

  it.each([
    ["a list", ["checkout"]],
    ["lists", { checkout: [true] }],
    ["a circle", circle()],
    ["a number that JSON lacks", { checkout: 10n }],
  ])("ignores values that are %s", (_, bootstrap) => {
    expect(idle(bootstrap).allValues()).toEqual({});
  });
});

function circle(): object {
  const object: Record<string, unknown> = {};
  object.checkout = object;
  return object;
}

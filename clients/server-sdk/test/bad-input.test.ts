import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { createClient } from "../src/index.ts";
import type { ClientOptions } from "../src/options.ts";
import { createFakeClock } from "./support/fake-clock.ts";
import {
  endAll,
  type LogLine,
  recordingLogger,
  serverKey,
  setUp,
  startClient,
} from "./support/setup.ts";

afterEach(endAll);

const anything: unknown[] = [
  ...[undefined, null, true, 0, Number.NaN, "", "text", Symbol("s"), 10n, [], {}, () => 1],
  new Date(0),
  new Map([["id", "user-1"]]),
  Object.create(null),
];

/** An object that throws when anything is read from it. */
const hostile = new Proxy(
  {},
  {
    get() {
      throw new Error("hostile");
    },
    ownKeys() {
      throw new Error("hostile");
    },
    getOwnPropertyDescriptor() {
      throw new Error("hostile");
    },
  },
);

type Method = (key: string, context: never, fallback: never) => unknown;

const splitColor = {
  value_type: "string",
  variations: [
    { key: "calm", value: "blue" },
    { key: "bright", value: "red" },
  ],
  serve: {
    split: [
      { variation: "calm", weight: 50, ranges: [[0, 5_000]] },
      { variation: "bright", weight: 50, ranges: [[5_000, 10_000]] },
    ],
  },
  off_variation: null,
} as const;

describe("options that cannot connect", () => {
  test.each<[string, unknown]>([
    ["no options", undefined],
    ["null", null],
    ["a text", "https://flags.example.com"],
    ["an object that throws", hostile],
    ["no base address", { serverKey }],
    ["an empty base address", { baseUrl: "", serverKey }],
    ["a base address without a scheme", { baseUrl: "flags.example.com", serverKey }],
    ["another scheme", { baseUrl: "ftp://flags.example.com", serverKey }],
    ["a password in the address", { baseUrl: "https://a:b@flags.example.com", serverKey }],
    ["no key", { baseUrl: "https://flags.example.com" }],
    [
      "a client key",
      { baseUrl: "https://flags.example.com", serverKey: serverKey.replace("s", "c") },
    ],
    ["a key that is a number", { baseUrl: "https://flags.example.com", serverKey: 5 }],
    [
      "a truncated key",
      { baseUrl: "https://flags.example.com", serverKey: serverKey.slice(0, 30) },
    ],
  ])("(%s) make a client that answers fallbacks, and one line in the log", async (_, options) => {
    const onConsole = jest.spyOn(console, "error").mockImplementation(() => undefined);
    const lines: LogLine[] = [];
    const withLogger =
      typeof options === "object" && options !== null && options !== hostile
        ? { ...options, logger: recordingLogger(lines) }
        : options;
    const client = createClient(withLogger as ClientOptions);
    const errors: unknown[] = [];
    client.on("error", (error) => errors.push(error));
    expect(await client.ready({ timeoutMs: 3_600_000 })).toBe(false);
    expect([client.isEnabled("a"), client.isEnabled("a", {}, true)]).toEqual([false, true]);
    expect(client.evaluate("a")).toMatchObject({
      ...{ reason: "invalid_options", error: "INVALID_OPTIONS" },
    });
    expect(client.getString("a", {}, "b")).toBe("b");
    expect(client.getNumberDetails("a", {}, 5)).toMatchObject({
      ...{ value: 5, error: "INVALID_OPTIONS" },
    });
    expect(client.allFlags()).toEqual({});
    expect(client.explain("a")).toBeUndefined();
    expect(client.status.connection).toBe("invalid_options");
    expect(errors).toMatchObject([{ code: "invalid_options", fatal: true }]);
    const errorLines = lines.filter(({ level }) => level === "error");
    expect(errorLines.length + onConsole.mock.calls.length).toBe(1);
    onConsole.mockRestore();
    await client.close();
  });

  test("leave the flags of the bootstrap object, also after the client is closed", async () => {
    const logger = recordingLogger([]);
    const flag = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 1 };
    const bootstrap = { format: 2, environment_id: "e", flags: { "new-checkout": flag } };
    const client = createClient({ baseUrl: "", serverKey, bootstrap, logger });
    expect(client.evaluate("new-checkout")).toMatchObject({ value: true, reason: "static" });
    expect(client.evaluate("missing").reason).toBe("flag_not_found");
    expect(client.status).toMatchObject({ source: "bootstrap", connection: "invalid_options" });
    await client.close();
    expect(client.status.connection).toBe("closed");
    expect(client.isEnabled("new-checkout")).toBe(true);
  });

  test("never reach the log", () => {
    const lines: LogLine[] = [];
    const key = `hc_${"a".repeat(16)}_${"s".repeat(43)}`;
    createClient({ baseUrl: "not an address", serverKey: key, logger: recordingLogger(lines) });
    expect(JSON.stringify(lines)).not.toContain("sss");
    expect(JSON.stringify(lines)).not.toContain("not an address");
  });
});

describe("optional options of the wrong form", () => {
  test.each<[string, object]>([
    ["pollIntervalMs", { pollIntervalMs: "soon" }],
    ["pollIntervalMs", { pollIntervalMs: 0 }],
    ["pollIntervalMs", { pollIntervalMs: Number.POSITIVE_INFINITY }],
    ["cacheFile", { cacheFile: 5 }],
    ["cacheFile", { cacheFile: "a\0b" }],
    ["bootstrap", { bootstrap: "flags" }],
    ["bootstrap", { bootstrap: { flags: {} } }],
  ])("(%s: %j) are ignored with one line in the log", async (name, options) => {
    const { client, warnings } = await setUp(options);
    expect(await client.ready()).toBe(true);
    expect(warnings()).toEqual([expect.stringContaining(name)]);
  });

  test("(a bootstrap object that throws or is not JSON) are ignored", async () => {
    for (const bootstrap of [hostile, 10n]) {
      const { client, warnings } = await setUp({ bootstrap });
      expect(await client.ready()).toBe(true);
      expect(warnings()).toEqual([expect.stringContaining("bootstrap")]);
    }
  });

  test("(a logger that throws) are ignored", async () => {
    const fail = () => {
      throw new Error("no disk");
    };
    const { client } = await setUp({ logger: { info: fail, warn: fail, error: fail } });
    expect(await client.ready()).toBe(true);
    expect(client.isEnabled("missing")).toBe(false);
  });
});

test("An address where no Halyard runs makes a client without flags, and one line in the log", async () => {
  const { client, warnings, edge, served, clock } = await setUp({}, (given) => {
    for (const route of ["stream", "poll"] as const)
      given.behave(route, { status: 404, body: "<html>Not found</html>" });
  });
  await eventually(() => {
    clock.advance(0);
    return edge.of("poll").length > 0;
  });
  await eventually(() => warnings().length > 0);
  clock.advance(30_000);
  expect(warnings()).toEqual([expect.stringContaining("Check `baseUrl`")]);
  expect(client.evaluate("new-checkout")).toMatchObject({ value: false, reason: "not_ready" });
  await served.stop();
});

test("An address without a server makes a client without flags, and one line in the log", async () => {
  const lines: LogLine[] = [];
  const clock = createFakeClock();
  const client = startClient(clock, { logger: recordingLogger(lines) });
  const errors: string[] = [];
  client.on("error", ({ code }) => errors.push(code));
  await eventually(() => {
    clock.advance(1_000);
    return errors.length > 3;
  });
  expect(new Set(errors)).toEqual(new Set(["unreachable"]));
  expect(lines.filter(({ level }) => level === "warn").length).toBe(1);
});

describe("arguments of the wrong type", () => {
  test("never throw, and every method returns what it documents", async () => {
    const { client } = await setUp({}, (edge) => edge.change("half", { rollout_percentage: 50 }));
    await client.ready();
    for (const key of [...anything, hostile, "new-checkout", "half"] as never[]) {
      for (const context of [...anything, hostile] as never[]) {
        for (const fallback of [...anything, hostile] as never[]) {
          expect(typeof client.isEnabled(key, context, fallback)).toBe("boolean");
          expect(typeof client.evaluate(key, context, fallback).value).toBe("boolean");
        }
        expect(client.allFlags(context)).toMatchObject({ "new-checkout": true });
        client.explain(key, context);
      }
    }
    for (const value of anything as never[]) {
      client.on(value, value)();
      client.off(value, value);
    }
    for (const options of [null, {}, { timeoutMs: -1 }, { timeoutMs: "long" }] as never[])
      expect(await client.ready(options)).toBe(true);
  });

  test("never make a typed method throw or return something else than a value or the fallback", async () => {
    const { client } = await setUp({}, (edge) => edge.change("color", splitColor));
    await client.ready();
    const values: unknown[] = ["blue", "red"];
    for (const key of [...anything, hostile, "new-checkout", "color"] as never[]) {
      for (const context of [...anything, hostile] as never[]) {
        for (const fallback of [...anything, hostile] as never[]) {
          const possible = [...values, fallback];
          expect(possible.includes(client.getString(key, context, fallback))).toBe(true);
          for (const method of [client.getNumber, client.getInteger, client.getObject] as Method[])
            expect(Object.is(method(key, context, fallback), fallback)).toBe(true);
          const { value } = client.getStringDetails(key, context, fallback);
          expect(possible.includes(value)).toBe(true);
          expect(client.getIntegerDetails(key, context, fallback).variation).toBeNull();
          expect(client.getObjectDetails(key, context, fallback).variation).toBeNull();
        }
      }
    }
  });

  test.each<[string, unknown]>([
    ["a text", "user-1"],
    ["an array", ["user-1"]],
    ["a number", 5],
    ["an object that throws", hostile],
  ])(
    "a context that is %s gives the fallback where a rule needs it, and one log line",
    async (_, context) => {
      const { client, warnings } = await setUp({}, (edge) =>
        edge.change("half", { rollout_percentage: 50 }),
      );
      await client.ready();
      for (let count = 0; count < 3; count += 1) {
        expect(client.evaluate("half", context as never, true)).toEqual({
          ...{
            value: true,
            variation: undefined,
            reason: "invalid_context",
            error: "INVALID_CONTEXT",
          },
        });
        expect(client.isEnabled("new-checkout", context as never)).toBe(true);
      }
      expect(warnings()).toEqual([expect.stringContaining("Invalid context")]);
    },
  );

  test("attributes of other types count as missing, with one log line that names them", async () => {
    const { client, lines } = await setUp({}, (edge) =>
      edge.change("half", { rollout_percentage: 50 }),
    );
    await client.ready();
    const context = { id: { nested: "secret" }, plan: "pro", since: new Date() } as never;
    for (let count = 0; count < 3; count += 1)
      expect(client.evaluate("half", context)).toMatchObject({ value: false, reason: "split" });
    const warnings = lines.filter(({ level }) => level === "warn");
    expect(warnings).toMatchObject([{ details: { attributes: ["id", "since"] } }]);
    expect(JSON.stringify(warnings)).not.toContain("secret");
  });

  test("a flag that needs a later release gives the fallback, and one log line with the version", async () => {
    const { client, edge, warnings } = await setUp();
    edge.change("later", { needs: ["moon"] } as object);
    await client.ready();
    for (let count = 0; count < 3; count += 1) {
      expect(client.isEnabled("later", {}, true)).toBe(true);
      expect(client.evaluate("later").reason).toBe("flag_not_found");
    }
    expect(warnings()).toEqual([
      expect.stringMatching(
        /The flag "later" uses "moon", which @halyard\/server-sdk \d+\.\d+\.\d+ does not know/,
      ),
    ]);
  });

  test("a flag that does not exist gives the fallback and one log line", async () => {
    const { client, warnings } = await setUp();
    await client.ready();
    for (let count = 0; count < 3; count += 1)
      expect(client.isEnabled("missing", {}, true)).toBe(true);
    expect(warnings()).toEqual([expect.stringContaining('There is no flag "missing"')]);
  });
});

test.each([
  [
    "throws",
    () => {
      throw new Error("listener");
    },
  ],
  ["rejects", () => Promise.reject(new Error("listener"))],
])("a listener that %s is logged once and disturbs nothing", async (_, listener: () => unknown) => {
  const { client, edge, warnings } = await setUp();
  client.on("change", listener);
  await client.ready();
  edge.change("added", {});
  await eventually(() => client.isEnabled("added"));
  await eventually(() => warnings().some((line) => line.includes("A listener")));
  expect(warnings().filter((line) => line.includes("A listener")).length).toBe(1);
});

import { knownNeeds } from "@halyard/evaluation";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, test } from "@jest/globals";
import { version } from "../src/version.ts";
import type { Settings } from "./support/fake-edge.ts";
import { environmentId } from "./support/fake-edge.ts";
import { endAll, newCacheFile, type Setup, setUp, startClient } from "./support/setup.ts";

afterEach(endAll);

const user = { id: "user-1" };

/** A flag that serves its first variation to all users. */
function typed(value_type: "string" | "number" | "object", ...values: unknown[]): Settings {
  const variations = values.map((value, index) => ({ key: `v${index}`, value }));
  return { value_type, variations, serve: { variation: "v0" }, off_variation: null };
}

/** Starts a client of an edge with these flags, and waits for them. */
async function withFlags(flags: Record<string, Settings>): Promise<Setup> {
  const setup = await setUp({}, (edge) => {
    for (const [key, settings] of Object.entries(flags)) edge.change(key, settings);
  });
  await setup.client.ready();
  return setup;
}

const ofEachType = {
  color: typed("string", "blue"),
  limit: typed("number", 12.5),
  layout: typed("object", { columns: [1, 2], header: { sticky: true } }),
};

describe("a typed flag", () => {
  test("has its value in its type", async () => {
    const { client } = await withFlags(ofEachType);
    expect(client.getString("color", user, "red")).toBe("blue");
    expect(client.getNumber("limit", user, 0)).toBe(12.5);
    expect(client.getObject("layout", user, {})).toEqual({
      ...{ columns: [1, 2], header: { sticky: true } },
    });
  });

  test("has details with the variation and the reason", async () => {
    const { client } = await withFlags(ofEachType);
    const origin = { variation: "v0", reason: "static" };
    expect(client.getStringDetails("color", user, "red")).toEqual({ value: "blue", ...origin });
    expect(client.getNumberDetails("limit", user, 0)).toEqual({ value: 12.5, ...origin });
    const details = client.getObjectDetails("layout", user, null);
    expect(details).toMatchObject({ value: { columns: [1, 2] }, ...origin });
  });

  test.each<[string, string]>([
    ["0.1", "0.1"],
    ["1e-21", "1e-21"],
    ["5e-324", "5e-324"],
    ["9007199254740991", "9007199254740991"],
  ])("keeps the number %s", async (text, expected) => {
    const { client } = await withFlags({ limit: typed("number", JSON.parse(text)) });
    expect(String(client.getNumber("limit", user, 7))).toBe(expected);
  });

  test("has empty values that are no fallback", async () => {
    const { client } = await withFlags({ color: typed("string", ""), limit: typed("number", 0) });
    expect(client.getString("color", user, "red")).toBe("");
    expect(client.getNumber("limit", user, 7)).toBe(0);
  });

  test("has a frozen object that all evaluations share", async () => {
    const { client } = await withFlags(ofEachType);
    const layout = client.getObject("layout", user, { columns: [0], header: {} });
    expect(client.getObject("layout", { id: "user-2" }, null)).toBe(layout);
    for (const part of [layout, layout.columns, layout.header])
      expect(Object.isFrozen(part)).toBe(true);
  });

  test("has members named __proto__ as data", async () => {
    const value = JSON.parse('{"b":1,"__proto__":{"admin":true},"a":2}');
    const { client } = await withFlags({ layout: typed("object", value) });
    const layout: object = client.getObject("layout", user, {});
    expect(JSON.stringify(layout)).toBe('{"b":1,"__proto__":{"admin":true},"a":2}');
    expect("admin" in layout).toBe(false);
  });

  test("is split by bucket, with the reason split", async () => {
    const { client } = await withFlags({ color: halves });
    expect(
      ["user-1", "user-2", "user-3", "user-4"].map(
        (id) => client.getStringDetails("color", { id }, "none").variation,
      ),
    ).toEqual(["red", "red", "red", "blue"]);
    expect(client.getStringDetails("color", user, "none").reason).toBe("split");
  });

  test("serves what the matching rule serves", async () => {
    const conditions = [{ attribute: "plan", operator: "equals" as const, value: "pro" }];
    const { client } = await withFlags({
      limit: {
        ...typed("number", 1, 2),
        targeting_rules: [{ conditions, serve: { variation: "v1" } }],
        off_variation: "v0",
      },
    });
    expect(client.getNumberDetails("limit", { plan: "pro" }, 0)).toEqual({
      ...{ value: 2, variation: "v1", reason: "targeting_match" },
    });
    expect(client.getNumberDetails("limit", { plan: "free" }, 0)).toEqual({
      ...{ value: 1, variation: "v0", reason: "default" },
    });
  });

  test("is explained with the variation, the split and the bucket", async () => {
    const { client } = await withFlags({ color: halves });
    expect(client.explain("color", user)).toMatchObject({
      ...{ value: true, reason: "split" },
      served: { variation: "red", serve: halves.serve, bucket: expect.any(Number) },
    });
  });

  test("is not among the boolean flags", async () => {
    const { client } = await withFlags(ofEachType);
    expect(client.allFlags(user)).toEqual({ "new-checkout": true });
  });
});

describe("all values", () => {
  test("are those of every flag, with their variations", async () => {
    const off = { ...typed("string", "blue"), enabled: false };
    const { client } = await withFlags({ ...ofEachType, half: { rollout_percentage: 50 }, off });
    expect(client.allValues({ id: "user-1" })).toEqual({
      "new-checkout": { value: true, variation: "on" },
      half: { value: false, variation: "off" },
      color: { value: "blue", variation: "v0" },
      limit: { value: 12.5, variation: "v0" },
      layout: { value: { columns: [1, 2], header: { sticky: true } }, variation: "v0" },
      off: { value: null, variation: null },
    });
  });

  test("lack those that need a context which is invalid", async () => {
    const { client } = await withFlags({ color: halves, limit: typed("number", 1) });
    expect(client.allValues("user-1" as never)).toEqual({
      "new-checkout": { value: true, variation: "on" },
      limit: { value: 1, variation: "v0" },
    });
  });

  test("have a key named __proto__ as data", async () => {
    const { client } = await withFlags({ ["__proto__"]: typed("object", { admin: true }) });
    expect(Object.keys(client.allValues())).toEqual(["new-checkout", "__proto__"]);
  });

  test("are counted as one evaluation of each flag", async () => {
    const { client, edge } = await withFlags({ color: halves });
    client.allValues(user);
    client.allValues({});
    await client.close();
    expect(JSON.parse(edge.of("usage")[0]?.body ?? "").flags).toEqual({
      "new-checkout": { true: 2, false: 0 },
      color: { false: 1, variations: { red: 1 } },
    });
  });
});

const halves: Settings = {
  ...typed("string"),
  variations: [
    { key: "blue", value: "#00f" },
    { key: "red", value: "#f00" },
  ],
  serve: {
    split: [
      { variation: "blue", weight: 50, ranges: [[0, 5_000]] },
      { variation: "red", weight: 50, ranges: [[5_000, 10_000]] },
    ],
  },
};

describe("the fallback", () => {
  test.each<[string, Settings, string]>([
    ["the off variation is the caller's default", { enabled: false }, "disabled"],
    ["the split has no unit", { serve: halves.serve }, "split"],
    ["the served variation does not exist", { serve: { variation: "gone" } }, "static"],
  ])("is the value if %s, with the reason", async (_, settings, reason) => {
    const { client } = await withFlags({ color: { ...typed("string", "blue"), ...settings } });
    expect(client.getString("color", {}, "green")).toBe("green");
    expect(client.getStringDetails("color", {}, "green")).toEqual({
      ...{ value: "green", variation: null, reason },
    });
  });

  test("is the value of a flag that does not exist", async () => {
    const { client, warnings } = await withFlags({});
    expect(client.getObject("layout", user, null)).toBeNull();
    expect(client.getStringDetails("color", user, "red")).toEqual({
      ...{ value: "red", variation: null, reason: "flag_not_found", error: "FLAG_NOT_FOUND" },
    });
    expect(warnings()).toEqual([expect.stringContaining('There is no flag "layout"')]);
  });

  test("is the value before the first flags", async () => {
    const { client } = await setUp();
    expect(client.getNumberDetails("limit", user, 5)).toEqual({
      ...{ value: 5, variation: null, reason: "not_ready", error: "NOT_READY" },
    });
  });

  test.each<[string, Settings]>([
    ["a value type", { value_type: "date" as never }],
    ["a feature", { needs: ["moon"] }],
  ])("is the value of a flag with %s of a later release, with one warning", async (_, later) => {
    const { client, warnings } = await withFlags({
      color: { ...typed("string", "blue"), ...later, serve: { gradual: 1 } as never },
      limit: typed("number", 1),
    });
    for (let count = 0; count < 3; count += 1)
      expect(client.getStringDetails("color", user, "red").error).toBe("FLAG_NOT_FOUND");
    expect(warnings()).toEqual([expect.stringContaining(`@halyard/server-sdk ${version}`)]);
    expect(client.getNumber("limit", user, 0)).toBe(1);
  });

  test("is the value of each flag of a later release, with one warning per flag", async () => {
    const later = { ...typed("string", "blue"), needs: ["moon"] };
    const { client, warnings } = await withFlags({ color: later, font: later });
    for (const key of ["color", "font", "color", "font"]) client.getString(key, user, "red");
    expect(warnings()).toEqual([
      expect.stringContaining('The flag "color" uses "moon"'),
      expect.stringContaining('The flag "font" uses "moon"'),
    ]);
  });

  test("is the value of each flag of a later release, with one warning per flag", async () => {
    const later = { ...typed("string", "blue"), needs: ["moon"] };
    const { client, warnings } = await withFlags({ color: later, font: later });
    for (const key of ["color", "font", "color", "font"]) client.getString(key, user, "red");
    expect(warnings()).toEqual([
      expect.stringContaining('The flag "color" uses "moon"'),
      expect.stringContaining('The flag "font" uses "moon"'),
    ]);
  });

  test("is the value for an invalid context where the user decides, and not elsewhere", async () => {
    const { client } = await withFlags({ ...ofEachType, split: halves });
    const invalid = "user-1" as never;
    expect(client.getString("color", invalid, "red")).toBe("blue");
    expect(client.getString("split", invalid, "green")).toBe("green");
    expect(client.getStringDetails("split", invalid, "green")).toEqual({
      ...{ value: "green", variation: null, reason: "invalid_context", error: "INVALID_CONTEXT" },
    });
  });
});

describe("a flag that is read as another type", () => {
  const mismatch = { reason: "type_mismatch", error: "TYPE_MISMATCH" };

  test("has the fallback, the error TYPE_MISMATCH, and one warning per flag", async () => {
    const { client, warnings } = await withFlags(ofEachType);
    for (let count = 0; count < 3; count += 1) {
      expect(client.getString("new-checkout", user, "red")).toBe("red");
      expect(client.getNumberDetails("color", user, 5)).toEqual({
        ...{ value: 5, variation: null, ...mismatch },
      });
      expect(client.getObjectDetails("limit", user, null)).toMatchObject(mismatch);
    }
    expect(warnings()).toEqual([
      'Halyard: The values of the flag "new-checkout" are of the type boolean, not string. The fallback is used.',
      'Halyard: The values of the flag "color" are of the type string, not number. The fallback is used.',
      'Halyard: The values of the flag "limit" are of the type number, not object. The fallback is used.',
    ]);
  });

  test("has the fallback of isEnabled", async () => {
    const { client, warnings } = await withFlags(ofEachType);
    expect([client.isEnabled("color"), client.isEnabled("color", user, true)]).toEqual([
      ...[false, true],
    ]);
    expect(client.evaluate("color", user, true)).toEqual({
      ...{ value: true, variation: undefined, ...mismatch },
    });
    expect(warnings()).toHaveLength(1);
  });

  test.each([
    [5, true],
    [-(2 ** 53 - 1), true],
    [2 ** 53, false],
    [0.5, false],
  ])("accepts %d as an integer: %p", async (value, isInteger) => {
    const { client } = await withFlags({ limit: typed("number", value) });
    expect(client.getInteger("limit", user, 7)).toBe(isInteger ? value : 7);
    expect(client.getIntegerDetails("limit", user, 7)).toEqual(
      isInteger
        ? { value, variation: "v0", reason: "static" }
        : { value: 7, variation: null, ...mismatch },
    );
  });
});

describe("a change of a typed flag", () => {
  test.each<[string, Settings]>([
    ["a value", { variations: [{ key: "v0", value: { columns: 3 } }] }],
    ["what is served", { serve: { variation: "v1" } }],
    ["the off variation", { off_variation: "v0" }],
  ])("is emitted for %s", async (_, changed) => {
    const layout = typed("object", { columns: 2 }, { columns: 4 });
    const { client, edge } = await withFlags({ layout });
    const changes: (readonly string[])[] = [];
    client.on("change", ({ keys }) => changes.push(keys));
    edge.change("layout", layout);
    edge.change("layout", { ...layout, ...changed });
    await eventually(() => changes.length > 0);
    expect(changes).toEqual([["layout"]]);
  });
});

describe("the sources of typed flags", () => {
  const value = JSON.parse('{"b":5e-324,"__proto__":{"admin":true},"a":0.1}');
  const layout = { ...typed("object", value), enabled: true };

  test("include the cache file", async () => {
    const cacheFile = await newCacheFile();
    const { client, served, clock } = await setUp({ cacheFile }, (edge) =>
      edge.change("layout", layout),
    );
    await client.ready();
    await client.close();
    await served.stop();
    const next = startClient(clock, { baseUrl: served.url, cacheFile });
    expect(next.status.source).toBe("cache");
    expect(JSON.stringify(next.getObject("layout", user, null))).toBe(JSON.stringify(value));
  });

  test("include the bootstrap object", async () => {
    const flag = { rollout_percentage: 100, targeting_rules: [], version: 1, ...layout };
    const bootstrap = { format: 2, environment_id: environmentId, flags: { layout: flag } };
    const { client } = await setUp({ bootstrap }, (edge) => edge.behave("stream", "hang"));
    expect(JSON.stringify(client.getObject("layout", user, null))).toBe(JSON.stringify(value));
    expect(Object.isFrozen(value)).toBe(false);
  });
});

describe("usage reports", () => {
  test("count evaluations by variation, and name the SDK with the features that it knows", async () => {
    const { client, edge } = await withFlags({ color: halves, limit: typed("number", 1) });
    for (const id of ["user-1", "user-2", "user-4"]) client.getString("color", { id }, "none");
    client.getStringDetails("color", {}, "none");
    client.getInteger("limit", user, 0);
    client.isEnabled("new-checkout");
    client.getNumber("color", user, 0);
    client.explain("color", user);
    await client.close();
    const report = JSON.parse(edge.of("usage")[0]?.body ?? "");
    expect(report.flags).toEqual({
      "new-checkout": { true: 1, false: 0 },
      color: { false: 1, variations: { red: 2, blue: 1 } },
      limit: { variations: { v0: 1 } },
    });
    expect(report.sdk).toEqual({ name: "@halyard/server-sdk", version, knows: knownNeeds });
  });

  test("count no number with a fraction that is read as an integer", async () => {
    const { client, edge } = await withFlags({ limit: typed("number", 0.5) });
    client.isEnabled("new-checkout");
    client.getInteger("limit", user, 0);
    client.getIntegerDetails("limit", user, 0);
    await client.close();
    expect(JSON.parse(edge.of("usage")[0]?.body ?? "").flags).toEqual({
      "new-checkout": { true: 1, false: 0 },
    });
  });

  test("keep the counts of a flag whose variations change", async () => {
    const { client, edge } = await withFlags({ color: halves });
    client.getString("color", user, "none");
    edge.change("color", { ...halves, variations: halves.variations?.toReversed() });
    edge.change("last", {});
    await eventually(() => client.isEnabled("last"));
    client.getString("color", user, "none");
    await client.close();
    expect(JSON.parse(edge.of("usage")[0]?.body ?? "").flags.color).toEqual({
      ...{ variations: { red: 2 } },
    });
  });
});

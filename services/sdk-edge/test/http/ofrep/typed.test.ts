import {
  compileCheck,
  type FlagEntry,
  OfrepBulkEvaluation,
  OfrepEvaluation,
} from "@halyard/contracts";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id, splitOf, typedFlag } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { askAll, askOne, tokenSecret } from "./asking.ts";

const key = apiKey();
const booleans = apiKey({ environment_id: id("env", 2) });
const colors = { blue: '"blue"', red: '"rot ß"' };
const forPro = { conditions: [{ attribute: "plan", operator: "equals" as const, value: "pro" }] };
const named = (number: number, flagKey: string, fields: Partial<FlagEntry> = {}) => ({
  ...{ flag_id: id("flag", number), key: flagKey, version: number, ...fields },
});

let edge: EdgeServer;
beforeEach(async () => {
  const alpha = { flag_id: id("flag", 1), key: "alpha", enabled: true };
  const zulu = { flag_id: id("flag", 2), key: "zulu" };
  const inOther = { environment_id: id("env", 2) };
  edge = await startEdgeServer(
    [
      ...[key.entry, booleans.entry, flagEntry(alpha), flagEntry(zulu)],
      ...[flagEntry({ ...alpha, ...inOther }), flagEntry({ ...zulu, ...inOther })],
      typedFlag("string", colors, named(3, "color", { targeting_rules: [forPro] })),
      typedFlag("string", colors, named(4, "company", byCompany)),
      typedFlag("object", { it: '{"b":1.0,"1":{"__proto__":null}}' }, named(5, "layout")),
      typedFlag("number", { it: "1" }, named(6, "none", { enabled: false, off_variation: null })),
    ],
    { streamTokenSecret: tokenSecret },
  );
});
afterEach(() => edge.stop());

const byCompany = { serve: splitOf({ blue: 100, red: 0 }), bucket_by: "company" };
const pro = { targetingKey: "u1", plan: "pro", company: "Acme" };

const textOf = async (path: string, context: object = {}, apiKeyText = key.text) => {
  const response = await fetch(`${edge.url}/ofrep/v1/evaluate/flags${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKeyText}`, "content-type": "application/json" },
    body: JSON.stringify({ context }),
  });
  expect(response.status).toBe(200);
  return response.text();
};

describe("given a request for one typed flag", () => {
  it.each([
    [
      "color",
      pro,
      '{"key":"color","value":"blue","reason":"TARGETING_MATCH","variant":"blue","metadata":{"version":3}}',
    ],
    [
      "color",
      {},
      '{"key":"color","value":"rot ß","reason":"DEFAULT","variant":"red","metadata":{"version":3}}',
    ],
    [
      "company",
      {},
      '{"key":"company","value":"rot ß","reason":"SPLIT","variant":"red","metadata":{"version":4}}',
    ],
    [
      "layout",
      {},
      '{"key":"layout","value":{"b":1.0,"1":{"__proto__":null}},"reason":"STATIC","variant":"it","metadata":{"version":5}}',
    ],
    ["none", {}, '{"key":"none","reason":"DISABLED","variant":"","metadata":{"version":6}}'],
  ])("returns its value, variation and version (%s, %j)", async (flagKey, context, text) => {
    expect(await textOf(`/${flagKey}`, context)).toBe(text);
    expect(compileCheck(OfrepEvaluation)(JSON.parse(text))).toMatchObject({ ok: true });
  });

  it("returns no metadata for a boolean flag", async () => {
    expect((await askOne(edge, key.text, "alpha")).body).not.toHaveProperty("metadata");
  });
});

describe("given a request for all flags", () => {
  it("returns each with the members of its own evaluation, without metadata", async () => {
    for (const context of [pro, {}, { company: "Acme" }, pro]) {
      const { body } = await askAll(edge, key.text, context);
      expect(compileCheck(OfrepBulkEvaluation)(body)).toMatchObject({ ok: true });
      const keys = body.flags.map((flag: { key: string }) => flag.key);
      expect(keys).toEqual(["alpha", "color", "company", "layout", "none", "zulu"]);
      for (const evaluation of body.flags) {
        const { metadata, ...one } = (await askOne(edge, key.text, evaluation.key, { context }))
          .body;
        expect(evaluation).toEqual(one);
      }
    }
  });

  it("returns the same for a context that is evaluated in steps", async () => {
    const large = { ...pro, padding: "x".repeat(2_000) };
    expect(await textOf("", large)).toBe(await textOf("", pro));
  });

  it("writes boolean flags with the same bytes as beside no typed flags", async () => {
    const alone = await textOf("", {}, booleans.text);
    const [alpha = "", zulu = ""] = /"flags":\[(.*?)\]/.exec(alone)?.[1]?.split(/(?<=\}),/) ?? [];
    const mixed = await textOf("");
    expect(mixed).toContain(`[${alpha},`);
    expect(mixed).toContain(`,${zulu}]`);
  });

  it("answers 304 to a user with the same values and reasons only", async () => {
    const etag = (await askAll(edge, key.text, pro)).headers.get("etag") ?? "";
    const again = (context: object) =>
      askAll(edge, key.text, context, { headers: { "if-none-match": etag } });
    expect((await again({ ...pro, targetingKey: "u2" })).status).toBe(304);
    expect((await again({ ...pro, plan: "free" })).status).toBe(200);
    expect((await again({ ...pro, company: "" })).status).toBe(200);
  });

  it.each([
    ["the value that the user gets", { blue: '"navy"', red: colors.red }, 200],
    ["a value that the user does not get", { blue: colors.blue, red: '"?"' }, 304],
  ])("answers a client with the earlier tag after a change of %s", async (_, values, status) => {
    const etag = (await askAll(edge, key.text, pro)).headers.get("etag") ?? "";
    await edge.feed(
      typedFlag("string", values, named(3, "color", { targeting_rules: [forPro], version: 9 })),
    );
    const headers = { "if-none-match": etag };
    expect((await askAll(edge, key.text, pro, { headers })).status).toBe(status);
  });
});

describe("the tag of all flags", () => {
  it("differs if two flags have swapped their types", async () => {
    const tags: (string | null)[] = [];
    for (const [typed, boolean] of [
      ["a", "b"],
      ["b", "a"],
    ] as const) {
      const other = await startEdgeServer([
        ...[key.entry, typedFlag("string", colors, named(1, typed))],
        flagEntry({ flag_id: id("flag", 2), key: boolean, enabled: true }),
      ]);
      tags.push((await askAll(other, key.text)).headers.get("etag"));
      await other.stop();
    }
    expect(tags).not.toContain(null);
    expect(new Set(tags).size).toBe(2);
  });
});

describe("given a flag of numbers", () => {
  it.each([
    ["without a fraction as they are", ["1", "-20", "9007199254740991"]],
    ["with a fraction as they are", ["0.1", "12.10", "0.0"]],
    ["with an exponent as they are", ["1e-21", "5e-324", "1E+2"]],
  ])("writes values %s", async (_how, values) => {
    expect(await writtenFor(values)).toEqual(values);
  });

  it.each([
    ["a fraction", ["1", "0.5", "-0.0"], ["1.0", "0.5", "-0.0"]],
    ["a fraction of zero", ["1", "2.0"], ["1.0", "2.0"]],
    ["an exponent", ["1", "1e3"], ["1.0", "1e3"]],
  ])("writes all values with a fraction if one has %s", async (_what, values, written) => {
    expect(await writtenFor(values)).toEqual(written);
  });

  it("changes the tag if another value makes the user's value a fraction", async () => {
    await feed(["1", "2"], 0);
    const etag = (await askAll(edge, key.text)).headers.get("etag") ?? "";
    await feed(["1", "2.5"], 0, 11);
    const headers = { "if-none-match": etag };
    expect((await askAll(edge, key.text, {}, { headers })).status).toBe(200);
  });

  async function feed(values: string[], served: number, version = 10) {
    const variations = Object.fromEntries(values.map((json, index) => [`v${index}`, json]));
    const fields = named(7, "number", { serve: { variation: `v${served}` }, version });
    await edge.feed(typedFlag("number", variations, fields));
  }

  /** Returns the texts of values in responses for one flag and for all, after the flag served each of them. */
  async function writtenFor(values: string[]) {
    const written: (string | undefined)[] = [];
    for (const index of values.keys()) {
      await feed(values, index, 10 + index);
      const [one, all] = [await textOf("/number"), await textOf("")].map(
        (text) => /"key":"number","value":([^,]*),/.exec(text)?.[1],
      );
      expect(all).toBe(one);
      written.push(one);
    }
    return written;
  }
});

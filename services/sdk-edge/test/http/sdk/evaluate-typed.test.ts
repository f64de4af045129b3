import { compileCheck, EvaluationResult, type FlagEntry } from "@halyard/contracts";
import { splitBucketOf } from "@halyard/evaluation";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, id, splitOf, typedFlag } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

const server = apiKey({ key_kind: "server" });
const colors = { blue: '"blue"', red: '"red"' };
const split = splitOf({ blue: 50, red: 50 });
const forPro = { conditions: [{ attribute: "plan", operator: "equals" as const, value: "pro" }] };

const named = (number: number, key: string, fields: Partial<FlagEntry> = {}) => ({
  ...{ flag_id: id("flag", number), key, ...fields },
});
const flags = [
  typedFlag("string", colors, named(1, "text")),
  typedFlag("number", { it: "1.0" }, named(2, "number")),
  typedFlag("object", { it: '{"b":1e-21,"1":{"__proto__":[]}}' }, named(3, "object")),
  typedFlag("string", colors, named(4, "disabled", { enabled: false })),
  typedFlag(
    "string",
    { it: '"for pro"' },
    named(5, "for-pro", { targeting_rules: [forPro], off_variation: null }),
  ),
  typedFlag("string", colors, named(6, "split", { serve: split })),
  typedFlag(
    "string",
    colors,
    named(7, "rule", {
      serve: split,
      targeting_rules: [{ ...forPro, serve: { variation: "red" } }],
    }),
  ),
];

const later = typedFlag(
  "string",
  colors,
  named(8, "of a later release", { needs: ["moon", "values"] }),
);

let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([server.entry, ...flags, later]);
});
afterAll(() => edge.stop());

/** Returns the body of an evaluation as it was sent. */
async function textOf(key: string, user: object = {}, query = "") {
  const response = await fetch(`${edge.url}/api/v1/sdk/evaluate?key=${key}${query}`, {
    headers: {
      authorization: `Bearer ${server.text}`,
      "x-user-context": JSON.stringify(user),
    },
  });
  expect(response.status).toBe(200);
  return response.text();
}

describe("a flag that needs a feature of a later release", () => {
  it.each(["flags", "values", "ruleset?format=2", "evaluate?key=of%20a%20later%20release"])(
    "is not found (%s)",
    async (path) => {
      const headers = { authorization: `Bearer ${server.text}` };
      const response = await fetch(`${edge.url}/api/v1/sdk/${path}`, { headers });
      expect(response.status).toBe(path.startsWith("evaluate") ? 404 : 200);
      expect(await response.text()).not.toContain("of a later release");
    },
  );
});

describe("given a typed flag", () => {
  it.each([
    ["text", {}, '{"key":"text","value":"blue","variation":"blue","reason":"static"}'],
    ["number", {}, '{"key":"number","value":1.0,"variation":"it","reason":"static"}'],
    [
      "object",
      {},
      '{"key":"object","value":{"b":1e-21,"1":{"__proto__":[]}},"variation":"it","reason":"static"}',
    ],
    ["disabled", {}, '{"key":"disabled","value":"red","variation":"red","reason":"disabled"}'],
    [
      "for-pro",
      { plan: "pro" },
      '{"key":"for-pro","value":"for pro","variation":"it","reason":"targeting_match"}',
    ],
    ["for-pro", {}, '{"key":"for-pro","value":null,"variation":null,"reason":"default"}'],
    ["split", {}, '{"key":"split","value":"red","variation":"red","reason":"split"}'],
    [
      "rule",
      { plan: "pro" },
      '{"key":"rule","value":"red","variation":"red","reason":"targeting_match"}',
    ],
  ])("returns the text of its value (%s, %j)", async (key, user, text) => {
    expect(await textOf(key, user)).toBe(text);
    expect(compileCheck(EvaluationResult)(JSON.parse(text))).toMatchObject({ ok: true });
  });

  it("returns the same for a context that is evaluated in steps", async () => {
    const user = { id: "u1", plan: "pro" };
    for (const { value } of flags) {
      const { key } = value as FlagEntry;
      const large = { ...user, padding: "x".repeat(2_000) };
      expect(await textOf(key, large)).toBe(await textOf(key, user));
    }
  });
});

describe("given explain=true", () => {
  const explain = async (key: string, user: object) =>
    JSON.parse(await textOf(key, user, "&explain=true"));

  it("shows the split with its ranges, and the bucket of the user", async () => {
    const body = await explain("split", { id: "u1" });
    const bucket = splitBucketOf("split", "u1");
    expect(body).toEqual({
      key: "split",
      value: bucket < 5_000 ? "blue" : "red",
      variation: bucket < 5_000 ? "blue" : "red",
      reason: "split",
      trace: { enabled: true, rollout_percentage: 100, rules: [], serve: split, bucket },
    });
    expect(compileCheck(EvaluationResult)(body)).toMatchObject({ ok: true });
  });

  it("shows the variation of the rule that matched, without a bucket", async () => {
    const { value, trace } = await explain("rule", { id: "u1", plan: "pro" });
    expect(value).toBe("red");
    expect(trace.serve).toEqual({ variation: "red" });
    expect(trace).not.toHaveProperty("bucket");
  });

  it("shows nothing that is served to a user who is out", async () => {
    const { value, variation, trace } = await explain("for-pro", {});
    expect([value, variation]).toEqual([null, null]);
    expect(trace).not.toHaveProperty("serve");
  });
});

import { compileCheck, OfrepBulkEvaluation, OfrepEvaluation } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { askAll, askOne, tokenSecret } from "./asking.ts";

const key = apiKey();
const otherEnvApiKey = apiKey({ environment_id: id("env", 2) });
const inGermany = { attribute: "country", operator: "equals" as const, value: "DE" };
let edge: EdgeServer;

beforeAll(async () => {
  edge = await startEdgeServer(
    [
      key.entry,
      otherEnvApiKey.entry,
      flagEntry({ flag_id: id("flag", 1), key: "zulu", enabled: true }),
      flagEntry({ flag_id: id("flag", 2), key: "alpha", enabled: false }),
      flagEntry({ flag_id: id("flag", 3), key: "half", enabled: true, rollout_percentage: 50 }),
      flagEntry({
        flag_id: id("flag", 4),
        key: "germany",
        enabled: true,
        targeting_rules: [{ conditions: [inGermany] }],
      }),
    ],
    { streamTokenSecret: tokenSecret },
  );
});
afterAll(() => edge.stop());

const germany = (value: boolean) => ({
  key: "germany",
  value,
  reason: value ? "TARGETING_MATCH" : "DEFAULT",
  variant: value ? "on" : "off",
});

describe("given a request for one flag", () => {
  it.each([
    ["zulu", {}, { value: true, reason: "STATIC", variant: "on" }],
    ["alpha", {}, { value: false, reason: "DISABLED", variant: "off" }],
    ["germany", { country: "DE" }, { value: true, reason: "TARGETING_MATCH", variant: "on" }],
    ["germany", { country: "FR" }, { value: false, reason: "DEFAULT", variant: "off" }],
    ["half", { targetingKey: "inside-3" }, { reason: "SPLIT" }],
  ])("returns value, reason and variant (%s, %j)", async (flagKey, context, expected) => {
    const { status, body, headers } = await askOne(edge, key.text, flagKey, { context });
    expect(status).toBe(200);
    expect(body).toMatchObject({ key: flagKey, ...expected });
    expect(compileCheck(OfrepEvaluation)(body)).toMatchObject({ ok: true });
    expect(headers.get("cache-control")).toBe("private, no-cache");
    expect(headers.get("vary")).toBe("Authorization, X-API-Key");
    expect(headers.get("access-control-allow-origin")).toBe("*");
  });

  it("excludes users without a targeting key from a rollout", async () => {
    const { body } = await askOne(edge, key.text, "half", { context: { country: "DE" } });
    expect(body).toEqual({ key: "half", value: false, reason: "SPLIT", variant: "off" });
  });

  it("returns the same result as the bulk evaluation", async () => {
    for (let user = 0; user < 20; user += 1) {
      const context = { targetingKey: `user-${user}`, country: user % 2 === 0 ? "DE" : "FR" };
      const { body: all } = await askAll(edge, key.text, context);
      for (const evaluation of all.flags)
        expect((await askOne(edge, key.text, evaluation.key, { context })).body).toEqual(
          evaluation,
        );
    }
  });
});

describe("given a request for all flags", () => {
  it("returns them in the order of their keys, with the URL of the stream", async () => {
    const { status, body } = await askAll(edge, key.text, { country: "DE" });
    expect(status).toBe(200);
    expect(compileCheck(OfrepBulkEvaluation)(body)).toMatchObject({ ok: true });
    expect(body.flags.map((flag: { key: string }) => flag.key)).toEqual([
      "alpha",
      "germany",
      "half",
      "zulu",
    ]);
    expect(body.flags[1]).toEqual(germany(true));
    expect(body.eventStreams).toEqual([
      {
        type: "sse",
        endpoint: { requestUri: expect.stringMatching(/^\/ofrep\/v1\/stream\?token=[\w.-]+$/) },
      },
    ]);
  });

  it("treats invalid attribute values as missing", async () => {
    const context = { country: { code: "DE" }, when: null, nested: [[1]] };
    const { status, body } = await askAll(edge, key.text, context);
    expect(status).toBe(200);
    expect(body.flags[1]).toEqual(germany(false));
  });

  it("reads the key from either header", async () => {
    for (const headers of [{ authorization: `Bearer ${key.text}` }, { "x-api-key": key.text }]) {
      const response = await fetch(`${edge.url}/ofrep/v1/evaluate/flags`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: "{}",
      });
      expect(response.status).toBe(200);
    }
  });

  it("returns an empty list for an environment without flags", async () => {
    expect((await askAll(edge, otherEnvApiKey.text)).body.flags).toEqual([]);
  });
});

describe("given the tag of an earlier response", () => {
  const again = async (etag: string, context: object = { country: "DE" }) =>
    askAll(edge, key.text, context, { headers: { "if-none-match": etag } });

  it.each([
    ["alone", (tag: string) => tag],
    ["in a list", (tag: string) => `"other", ${tag}`],
    ["marked as weak by a proxy", (tag: string) => `W/${tag}`],
    ["as a star", () => "*"],
  ])("answers 304 to the same request (%s)", async (_how, spelled) => {
    const { headers } = await askAll(edge, key.text, { country: "DE" });
    const tag = headers.get("etag") as string;
    const answer = await again(spelled(tag));
    expect(answer.status).toBe(304);
    expect(answer.body).toBeUndefined();
    expect(answer.headers.get("etag")).toBe(tag);
    expect(answer.headers.get("cache-control")).toBe("private, no-cache");
    expect(answer.headers.get("access-control-expose-headers")).toContain("ETag");
  });

  it("answers 200 to a context with other values, and 304 to one with the same values", async () => {
    const { headers } = await askAll(edge, key.text, { country: "DE" });
    const tag = headers.get("etag") as string;
    expect((await again(tag, { country: "FR" })).status).toBe(200);
    expect((await again(tag, { country: "de", plan: "pro" })).status).toBe(304);
  });

  it("answers 200 to another key, because its stream has another URL", async () => {
    const [one, other] = [apiKey(), apiKey()];
    await edge.feed(one.entry, other.entry);
    const { headers } = await askAll(edge, one.text);
    const tag = headers.get("etag") as string;
    const asked = await askAll(edge, other.text, {}, { headers: { "if-none-match": tag } });
    expect(asked.status).toBe(200);
  });
});

describe("given the next hour", () => {
  it("changes the tag and the token, so that clients replace tokens before they expire", async () => {
    const later = await startEdgeServer([key.entry], { streamTokenSecret: tokenSecret });
    const before = await askAll(later, key.text);
    later.passTime(60 * 60 * 1_000);
    const after = await askAll(
      later,
      key.text,
      {},
      { headers: { "if-none-match": before.headers.get("etag") as string } },
    );
    expect(after.status).toBe(200);
    expect(after.body.eventStreams).not.toEqual(before.body.eventStreams);
    await later.stop();
  });
});

describe("given an edge without a token secret", () => {
  it("offers no stream, and its tag does not change with the hour", async () => {
    const plain = await startEdgeServer([key.entry]);
    const before = await askAll(plain, key.text);
    expect(before.body).toEqual({ flags: [] });
    plain.passTime(60 * 60 * 1_000);
    const etag = before.headers.get("etag") as string;
    expect((await askAll(plain, key.text, {}, { headers: { "if-none-match": etag } })).status).toBe(
      304,
    );
    await plain.stop();
  });
});

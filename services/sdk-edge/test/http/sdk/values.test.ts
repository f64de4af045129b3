import { compileCheck, type FlagEntry, TypedValues } from "@halyard/contracts";
import { compile, createContext } from "@halyard/evaluation";
import { call } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id, splitOf, typedFlag } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

const client = apiKey();
const server = apiKey({ key_kind: "server" });
const reader = apiKey({ key_kind: "reader" });
const booleans = apiKey({ environment_id: id("env", 2) });
const empty = apiKey({ environment_id: id("env", 3) });
const ofBooleans = { environment_id: id("env", 2) };

const colors = { blue: '"blue"', red: '"rot „ß”"' };
const byCompany = { serve: splitOf({ blue: 50, red: 50 }), bucket_by: "company" };
const color = (fields: Partial<FlagEntry> = {}) =>
  typedFlag("string", colors, { flag_id: id("flag", 2), key: "color", ...byCompany, ...fields });
const forPro = {
  conditions: [{ attribute: "plan", operator: "equals" as const, value: "pro" }],
  serve: { variation: "large" },
};

let edge: EdgeServer;
beforeEach(async () => {
  edge = await startEdgeServer([
    ...[client.entry, server.entry, reader.entry, booleans.entry, empty.entry],
    flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true }),
    color(),
    typedFlag("number", { small: "1", large: "2.50", off: "0" }, limitFields),
    typedFlag("object", { only: "{}" }, { flag_id: id("flag", 4), key: "none", ...callersDefault }),
    flagEntry({ flag_id: id("flag", 5), key: "zulu" }),
    flagEntry({ ...ofBooleans, flag_id: id("flag", 6), key: "off" }),
    flagEntry({ ...ofBooleans, flag_id: id("flag", 7), key: "on", enabled: true }),
  ]);
});
afterEach(() => edge.stop());

const limitFields = { flag_id: id("flag", 3), key: "limit", targeting_rules: [forPro] };
const callersDefault = { enabled: false, off_variation: null };

const url = () => `${edge.url}/api/v1/sdk/values`;
const ask = (context: object = {}, headers: Record<string, string> = {}, key = client.text) =>
  call(url(), { key, headers: { "x-user-context": JSON.stringify(context), ...headers } });

/** Returns the body of a response as it was sent. */
const textFor = async (context: object = {}) => {
  const response = await fetch(url(), {
    headers: {
      authorization: `Bearer ${client.text}`,
      "x-user-context": JSON.stringify(context),
    },
  });
  return response.text();
};

/** Returns a company whose users get this color. */
function companyWith(variation: keyof typeof colors): string {
  const { variationOf } = compile(color().value as FlagEntry);
  const index = Object.keys(colors).indexOf(variation);
  for (let number = 0; ; number += 1) {
    const company = `company-${number}`;
    if (variationOf?.(createContext(new Map([["company", company]]))) === index) return company;
  }
}

describe("given flags of all types", () => {
  it("returns the value and the variation of each flag for the user", async () => {
    const { status, body } = await ask({ plan: "pro", company: companyWith("blue") });
    expect(status).toBe(200);
    expect(body).toEqual({
      values: {
        alpha: { value: true, variation: "on" },
        color: { value: "blue", variation: "blue" },
        limit: { value: 2.5, variation: "large" },
        none: { value: null, variation: null },
        zulu: { value: false, variation: "off" },
      },
    });
    expect(compileCheck(TypedValues)(body)).toMatchObject({ ok: true });
  });

  it("returns the values of each user after those of another", async () => {
    for (const variation of ["red", "blue", "red"] as const) {
      const { body } = await ask({ company: companyWith(variation) });
      expect(body.values.color).toEqual({ value: JSON.parse(colors[variation]), variation });
      expect(body.values.limit).toEqual({ value: 0, variation: "off" });
    }
  });

  it.each([
    ["without the attribute", {}],
    ["with an empty attribute", { company: "" }],
    ["with an attribute that is neither a text nor a number", { company: true }],
  ])(
    "returns the off variation of a split to a user %s, who is out everywhere",
    async (_, user) => {
      expect((await ask(user)).body.values.color).toEqual({ value: "rot „ß”", variation: "red" });
      const flags = await call(`${edge.url}/api/v1/sdk/flags`, {
        ...{ key: client.text, headers: { "x-user-context": JSON.stringify(user) } },
      });
      expect(flags.body.flags.color).toBe(false);
    },
  );

  it("returns the same values for a context that is evaluated in steps", async () => {
    const user = { plan: "pro", company: companyWith("blue") };
    const large = { ...user, padding: "x".repeat(5_000) };
    const answered = await call(url(), { method: "POST", key: client.text, body: large });
    const { body, headers } = await ask(user);
    expect(answered.body).toEqual(body);
    expect(answered.headers.get("etag")).toBe(headers.get("etag"));
  });

  it("writes a boolean flag in the same way beside typed flags and alone", async () => {
    const { body } = await ask({}, {}, booleans.text);
    expect(body).toEqual({
      values: { off: { value: false, variation: "off" }, on: { value: true, variation: "on" } },
    });
  });
});

describe("given a request", () => {
  it.each([
    ["a client key", client],
    ["a server key", server],
    ["a reader key", reader],
  ])("answers %s with the headers of all flags", async (_kind, { text }) => {
    const { status, headers } = await ask({}, {}, text);
    const flags = await call(`${edge.url}/api/v1/sdk/flags`, { key: text });
    expect(status).toBe(200);
    expect(headers.get("etag")).toMatch(/^"[\w-]{22}"$/);
    const names = ["content-type", "cache-control", "vary", "access-control-allow-origin"];
    for (const name of names) expect(headers.get(name)).toBe(flags.headers.get(name));
  });

  it("reads the context from the query, the headers and the body", async () => {
    const reads = [
      call(`${url()}?user_id=u1`, { key: client.text }),
      ask({ plan: "pro" }),
      call(url(), { key: client.text, method: "POST", body: { plan: "pro" } }),
      call(url(), { key: client.text, method: "POST" }),
    ];
    const answers = await Promise.all(reads);
    expect(answers.map(({ body }) => body.values.limit.variation)).toEqual([
      ...["off", "large", "large", "off"],
    ]);
  });

  it.each([
    ["an unknown key", () => ask({}, {}, apiKey().text), 401],
    ["an invalid context", () => ask({}, { "x-user-context": "{" }), 400],
    [
      "a body over 64 KiB",
      () =>
        call(url(), { key: client.text, method: "POST", body: { padding: "x".repeat(65_536) } }),
      413,
    ],
  ])("rejects %s", async (_what, send, status) => {
    const rejected = await send();
    expect(rejected.status).toBe(status);
    expect(rejected.headers.get("access-control-allow-origin")).toBe("*");
  });

  it("returns an empty object for an environment without flags", async () => {
    expect((await ask({}, {}, empty.text)).body).toEqual({ values: {} });
  });

  it("answers HEAD with the length of the bytes", async () => {
    const { status, headers } = await call(url(), { method: "HEAD", key: client.text });
    expect(status).toBe(200);
    expect(headers.get("content-length")).toBe(String(Buffer.byteLength(await textFor())));
  });
});

describe("given the tag of an earlier response", () => {
  const tagFor = async (context: object) => (await ask(context)).headers.get("etag") ?? "";

  it("answers 304 to a user with the same values", async () => {
    const etag = await tagFor({ plan: "pro" });
    const { status, body } = await ask({ plan: "PRO", country: "DE" }, { "if-none-match": etag });
    expect(status).toBe(304);
    expect(body).toBeUndefined();
  });

  it("answers 200 to a user with another variation", async () => {
    const etag = await tagFor({ company: companyWith("blue") });
    const other = { company: companyWith("red") };
    expect((await ask(other, { "if-none-match": etag })).status).toBe(200);
  });

  it.each([
    ["another value of the variation", { blue: '"navy"', red: colors.red }, 200],
    ["another text of an equal value", { blue: '"blu\\u0065"', red: colors.red }, 200],
    ["another value of a variation that the user does not get", { ...colors, red: '"?"' }, 304],
  ])("answers after a new version with %s: %j, %d", async (_what, values, status) => {
    const user = { company: companyWith("blue") };
    const etag = await tagFor(user);
    const next = { flag_id: id("flag", 2), key: "color", version: 2, ...byCompany };
    await edge.feed(typedFlag("string", values, next));
    const answered = await ask(user, { "if-none-match": etag });
    expect(answered.status).toBe(status);
    if (status === 200)
      expect(answered.body.values.color).toEqual({
        ...{ value: JSON.parse(values.blue), variation: "blue" },
      });
  });

  it("answers 304 to a user who gets the same variation for another reason", async () => {
    const off = { flag_id: id("flag", 2), key: "color", off_variation: "blue" };
    await edge.feed(typedFlag("string", colors, { ...off, version: 2 }));
    const etag = await tagFor({});
    await edge.feed(typedFlag("string", colors, { ...off, version: 3, enabled: false }));
    expect((await ask({}, { "if-none-match": etag })).status).toBe(304);
  });

  it("has another tag for a typed flag in place of a boolean flag with its key", async () => {
    const etag = await tagFor({});
    const other = { flag_id: id("flag", 9), key: "zulu" };
    await edge.feed(typedFlag("string", { off: "false" }, other));
    expect((await ask({}, { "if-none-match": etag })).status).toBe(200);
  });
});

describe("the tag of the values", () => {
  it("differs if two flags have swapped their types", async () => {
    const tags = [];
    for (const [typed, boolean] of [
      ["a", "b"],
      ["b", "a"],
    ] as const) {
      const other = await startEdgeServer([
        client.entry,
        typedFlag("string", colors, { flag_id: id("flag", 1), key: typed }),
        flagEntry({ flag_id: id("flag", 2), key: boolean }),
      ]);
      const { headers } = await call(`${other.url}/api/v1/sdk/values`, { key: client.text });
      tags.push(headers.get("etag"));
      await other.stop();
    }
    expect(new Set(tags).size).toBe(2);
  });
});

describe("given values with their own texts", () => {
  const feed = (type: FlagEntry["value_type"], json: string) =>
    edge.feed(typedFlag(type, { it: json }, { flag_id: id("flag", 2), key: "color", version: 2 }));

  it.each(["0.1", "1e-21", "5e-324", "9007199254740991", "-9007199254740991", "1.0", "1E+2"])(
    "returns the number %s as it was written",
    async (json) => {
      await feed("number", json);
      expect(await textFor()).toContain(`"color":{"value":${json},"variation":"it"}`);
    },
  );

  it.each([
    ['{"__proto__":{"admin":true},"constructor":1,"toString":null}'],
    ['{"b":1,"2":2,"1":1.0,"":[{"deep":[]}]}'],
    ['{"text":"größe \u2028 \ud83d\ude00 </script>"}'],
    ['{"escaped":"\\ud83d\\ude00 \\u0041 \\/"}'],
  ])("returns the object %s as it was written", async (json) => {
    await feed("object", json);
    expect(await textFor()).toContain(`"color":{"value":${json},"variation":"it"}`);
  });

  it("returns an object of 256 KiB, whose length in bytes is announced", async () => {
    const json = JSON.stringify({ text: "ß".repeat(128 * 1024) });
    await feed("object", json);
    expect(await textFor()).toContain(json);
    expect((await ask()).body.values.color.value).toEqual(JSON.parse(json));
  });
});

describe("given texts of very different lengths", () => {
  const texts = { short: '"a"', middle: '"„b”"', long: JSON.stringify("c".repeat(300)) };
  const key = apiKey({ environment_id: id("env", 4) });
  const serveBy = (attribute: string) =>
    Object.keys(texts).map((value) => ({
      conditions: [{ attribute, operator: "equals" as const, value }],
      serve: { variation: value },
    }));
  const flag = (number: number, variations: Record<string, string>, attribute: string) =>
    typedFlag("string", variations, {
      ...{ flag_id: id("flag", number), environment_id: id("env", 4), key: `flag-${number}` },
      ...{ targeting_rules: serveBy(attribute).slice(0, Object.keys(variations).length) },
    });
  const { long: _, ...similar } = texts;

  beforeEach(async () => {
    await edge.stop();
    edge = await startEdgeServer([
      key.entry,
      flag(1, texts, "first"),
      flagEntry({ environment_id: id("env", 4), flag_id: id("flag", 2), key: "flag-2" }),
      flag(3, similar, "third"),
      flag(4, texts, "fourth"),
    ]);
  });

  it.each([
    [["long", "short", "long"]],
    [["short", "middle", "middle"]],
    [["middle", "short", "long"]],
  ])("returns the values of every user after those of another: %j", async ([a, b, c]) => {
    for (const [first, third, fourth] of [
      [a, b, c],
      [c, b, a],
      [b, b, b],
    ] as const) {
      const { body } = await ask({ first, third, fourth }, {}, key.text);
      const served = (variation = "") => ({
        value: JSON.parse(texts[variation as keyof typeof texts]),
        variation,
      });
      expect(body.values).toEqual({
        "flag-1": served(first),
        "flag-2": { value: false, variation: "off" },
        "flag-3": served(third),
        "flag-4": served(fourth),
      });
    }
  });
});

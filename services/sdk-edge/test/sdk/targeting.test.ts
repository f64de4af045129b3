import type { FlagEntry, TargetingRule } from "@halyard/contracts";
import { compileCheck, EvaluationResult, FlagValues } from "@halyard/contracts";
import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/**
 * One edge whose flags tell attributes apart: `said-<attribute>` is on for those whose attribute
 * equals "yes". What each way of saying who asks may hold is tested with the readers; here, that every
 * endpoint takes every way.
 */
const client = apiKey();
const server = apiKey({ key_kind: "server" });
const attributes = ["id", "email", "country"];
let edge: EdgeServer;

beforeAll(async () => {
  edge = await startEdgeServer([
    client.entry,
    server.entry,
    ...attributes.map((attribute, number) =>
      flag(number, `said-${attribute}`, { targeting_rules: [whoSaid(attribute)] }),
    ),
    flag(10, "half", { rollout_percentage: 50 }),
    flag(11, "open", {}),
  ]);
});
afterAll(() => edge.stop());

const json = (value: unknown) => JSON.stringify(value);
const base64 = (text: string) => Buffer.from(text).toString("base64");

type Way = {
  way: string;
  says: string;
  query?: string;
  headers?: Record<string, string>;
  body?: { flags: unknown; evaluate: unknown };
};

const ways: Way[] = [
  { way: "the query", says: "id", query: "user_id=yes" },
  {
    way: "X-User-Context",
    says: "country",
    headers: { "x-user-context": json({ country: "yes" }) },
  },
  {
    way: "X-User-Context in base64",
    says: "id",
    headers: { "x-user-context": base64(json({ user_id: "YES" })) },
  },
  { way: "X-User-ID", says: "id", headers: { "x-user-id": "yes" } },
  { way: "X-User-Email", says: "email", headers: { "x-user-email": "yes" } },
  {
    way: "X-User-Attributes",
    says: "country",
    headers: { "x-user-attributes": "plan=pro, country=yes" },
  },
  {
    way: "the body",
    says: "country",
    body: { flags: { country: "yes" }, evaluate: { user: { attributes: { country: "yes" } } } },
  },
];

const request = ({ headers = {}, body }: Way, endpoint: "flags" | "evaluate") => ({
  headers,
  key: client.text,
  ...(body === undefined ? {} : { method: "POST", body: body[endpoint] }),
});

describe.each(ways)("given a user who is told by $way", (way) => {
  it("answers all flags for that user", async () => {
    const { status, body } = await call(
      `${edge.url}/api/v1/sdk/flags?${way.query ?? ""}`,
      request(way, "flags"),
    );
    expect(status).toBe(200);
    expect(compileCheck(FlagValues)(body)).toMatchObject({ ok: true });
    for (const attribute of attributes)
      expect(body.flags[`said-${attribute}`]).toBe(attribute === way.says);
  });

  it.each(attributes)("evaluates a flag that asks for %s", async (attribute) => {
    const { status, body } = await call(
      `${edge.url}/api/v1/sdk/evaluate?key=said-${attribute}&${way.query ?? ""}`,
      request(way, "evaluate"),
    );
    const reason = attribute === way.says ? "targeting_match" : "default";
    expect(status).toBe(200);
    expect(compileCheck(EvaluationResult)(body)).toMatchObject({ ok: true });
    expect(body).toMatchObject({ value: attribute === way.says, reason });
  });
});

describe("given several ways at once", () => {
  it("lets the body win over the headers, and these over the query, attribute by attribute", async () => {
    const { body } = await call(`${edge.url}/api/v1/sdk/flags?user_id=yes`, {
      key: client.text,
      method: "POST",
      headers: { "x-user-context": json({ email: "yes", country: "yes" }), "x-user-email": "no" },
      body: { country: "no" },
    });
    expect(body.flags).toMatchObject({
      "said-id": true,
      "said-email": true,
      "said-country": false,
    });
  });
});

describe("given the tag of an answer", () => {
  const ask = (userId: string, ifNoneMatch?: string) =>
    call(`${edge.url}/api/v1/sdk/flags?user_id=${userId}`, {
      key: client.text,
      headers: ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch },
    });

  it("answers 304 to whoever has the values that this user gets, and 200 to others", async () => {
    const byHalf = new Map<boolean, string[]>([
      [true, []],
      [false, []],
    ]);
    for (let number = 0; number < 20; number += 1) {
      const { body } = await ask(`user-${number}`);
      byHalf.get(body.flags.half)?.push(`user-${number}`);
    }
    const [inside, alsoInside] = byHalf.get(true) ?? [];
    const [outside] = byHalf.get(false) ?? [];
    const etag = (await ask(String(inside))).headers.get("etag") ?? "";
    expect((await ask(String(alsoInside), etag)).status).toBe(304);
    expect((await ask(String(outside), etag)).status).toBe(200);
  });

  it("says what the answer depends on", async () => {
    expect((await ask("u1")).headers.get("vary")).toBe(
      "Authorization, X-User-Context, X-User-ID, X-User-Email, X-User-Attributes",
    );
  });
});

describe("given a context that cannot be read", () => {
  it.each(["/api/v1/sdk/flags", "/api/v1/sdk/evaluate?key=open", "/api/v1/sdk/stream"])(
    "refuses %s, so that a page of any origin can read why",
    async (path) => {
      const { status, body, headers } = await call(edge.url + path, {
        key: client.text,
        headers: { "x-user-context": "{ broken", "x-request-id": "mine" },
      });
      expect(status).toBe(400);
      expect(body.error.code).toBe("VALIDATION_001");
      expect(body.error.message).toContain("X-User-Context");
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("x-request-id")).toBe("mine");
    },
  );

  it("refuses one that is too large with 413", async () => {
    const { status, body } = await call(`${edge.url}/api/v1/sdk/flags`, {
      key: client.text,
      headers: { "x-user-context": json({ country: "x".repeat(16 * 1024) }) },
    });
    expect(status).toBe(413);
    expect(body.error.code).toBe("VALIDATION_002");
  });
});

describe("given a wish for an explanation", () => {
  const explain = (key: string, value = "true") =>
    call(`${edge.url}/api/v1/sdk/evaluate?key=said-country&explain=${value}`, {
      key,
      headers: { "x-user-context": json({ country: "somewhere-secret" }) },
    });

  it("tells a server key how each condition fared, without the user's values", async () => {
    const { status, body } = await explain(server.text);
    expect(status).toBe(200);
    expect(compileCheck(EvaluationResult)(body)).toMatchObject({ ok: true });
    expect(body).toMatchObject({
      key: "said-country",
      value: false,
      reason: "default",
      trace: {
        enabled: true,
        rules: [
          {
            index: 0,
            reached: true,
            matched: false,
            conditions: [{ attribute: "country", operator: "equals", held: false }],
          },
        ],
      },
    });
    expect(json(body)).not.toContain("somewhere-secret");
  });

  it("refuses it to a client key, because rules are not for everybody's eyes", async () => {
    const { status, body } = await explain(client.text);
    expect(status).toBe(403);
    expect(body.error.code).toBe("AUTH_002");
  });

  it("takes true and false and nothing else", async () => {
    expect((await explain(client.text, "false")).body).not.toHaveProperty("trace");
    expect((await explain(server.text, "yes")).status).toBe(400);
  });
});

function flag(number: number, key: string, fields: Partial<FlagEntry>) {
  return flagEntry({ flag_id: id("flag", number), key, enabled: true, ...fields });
}

function whoSaid(attribute: string): TargetingRule {
  return { conditions: [{ attribute, operator: "equals", value: "yes" }] };
}

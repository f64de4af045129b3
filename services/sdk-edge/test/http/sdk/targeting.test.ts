import {
  compileCheck,
  EvaluationResult,
  type FlagEntry,
  FlagValues,
  type TargetingRule,
} from "@halyard/contracts";
import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

/**
 * Checks that every endpoint reads every source of attributes. The tests of the readers check each source in detail.
 * The flag `said-<attribute>` is on for users whose attribute equals "yes".
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

type Source = {
  source: string;
  attribute: string;
  query?: string;
  headers?: Record<string, string>;
  body?: { flags: unknown; evaluate: unknown };
};

const sources: Source[] = [
  { source: "the query", attribute: "id", query: "user_id=yes" },
  {
    source: "X-User-Context",
    attribute: "country",
    headers: { "x-user-context": json({ country: "yes" }) },
  },
  {
    source: "X-User-Context in base64",
    attribute: "id",
    headers: { "x-user-context": base64(json({ user_id: "YES" })) },
  },
  { source: "X-User-ID", attribute: "id", headers: { "x-user-id": "yes" } },
  { source: "X-User-Email", attribute: "email", headers: { "x-user-email": "yes" } },
  {
    source: "X-User-Attributes",
    attribute: "country",
    headers: { "x-user-attributes": "plan=pro, country=yes" },
  },
  {
    source: "the body",
    attribute: "country",
    body: { flags: { country: "yes" }, evaluate: { user: { attributes: { country: "yes" } } } },
  },
];

const request = ({ headers = {}, body }: Source, endpoint: "flags" | "evaluate") => ({
  headers,
  key: client.text,
  ...(body === undefined ? {} : { method: "POST", body: body[endpoint] }),
});

describe.each(sources)("given a user from $source", (source) => {
  it("evaluates all flags for the user", async () => {
    const { status, body } = await call(
      `${edge.url}/api/v1/sdk/flags?${source.query ?? ""}`,
      request(source, "flags"),
    );
    expect(status).toBe(200);
    expect(compileCheck(FlagValues)(body)).toMatchObject({ ok: true });
    for (const attribute of attributes)
      expect(body.flags[`said-${attribute}`]).toBe(attribute === source.attribute);
  });

  it.each(attributes)("evaluates a flag with a rule on %s", async (attribute) => {
    const { status, body } = await call(
      `${edge.url}/api/v1/sdk/evaluate?key=said-${attribute}&${source.query ?? ""}`,
      request(source, "evaluate"),
    );
    const reason = attribute === source.attribute ? "targeting_match" : "default";
    expect(status).toBe(200);
    expect(compileCheck(EvaluationResult)(body)).toMatchObject({ ok: true });
    expect(body).toMatchObject({ value: attribute === source.attribute, reason });
  });
});

describe("given several sources", () => {
  it("prefers the body to headers, and headers to the query, for each attribute", async () => {
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

describe("given the tag of a response", () => {
  const ask = (userId: string, ifNoneMatch?: string) =>
    call(`${edge.url}/api/v1/sdk/flags?user_id=${userId}`, {
      key: client.text,
      headers: ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch },
    });

  it("answers 304 to users with the same values, and 200 to others", async () => {
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

  it("sends Vary with all headers that affect the response", async () => {
    expect((await ask("u1")).headers.get("vary")).toBe(
      "Authorization, X-User-Context, X-User-ID, X-User-Email, X-User-Attributes",
    );
  });
});

describe("given an invalid context", () => {
  it.each(["/api/v1/sdk/flags", "/api/v1/sdk/evaluate?key=open", "/api/v1/sdk/stream"])(
    "rejects %s with a problem that pages of any origin can read",
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

  it("rejects a context that is too large with 413", async () => {
    const { status, body } = await call(`${edge.url}/api/v1/sdk/flags`, {
      key: client.text,
      headers: { "x-user-context": json({ country: "x".repeat(16 * 1024) }) },
    });
    expect(status).toBe(413);
    expect(body.error.code).toBe("VALIDATION_002");
  });
});

describe("given a request for an explanation", () => {
  const explain = (key: string, value = "true") =>
    call(`${edge.url}/api/v1/sdk/evaluate?key=said-country&explain=${value}`, {
      key,
      headers: { "x-user-context": json({ country: "somewhere-secret" }) },
    });

  it("returns the result of each condition to a server key, without the user's values", async () => {
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

  it("rejects a client key, because client keys must not reveal rules", async () => {
    const { status, body } = await explain(client.text);
    expect(status).toBe(403);
    expect(body.error.code).toBe("AUTH_002");
  });

  it("accepts only true and false", async () => {
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

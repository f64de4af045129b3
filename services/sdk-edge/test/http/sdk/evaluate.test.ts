import { once } from "node:events";
import { request } from "node:http";
import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

const key = apiKey();
let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([
    flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true }),
    flagEntry({ flag_id: id("flag", 2), key: "beta", enabled: false }),
    flagEntry({ flag_id: id("flag", 3), key: "foreign", environment_id: id("env", 2) }),
    flagEntry({
      flag_id: id("flag", 4),
      key: "germany",
      enabled: true,
      targeting_rules: [
        { conditions: [{ attribute: "country", operator: "equals", value: "DE" }] },
      ],
    }),
    key.entry,
  ]);
});
afterAll(() => edge.stop());

describe.each([
  { method: "GET", options: {} },
  { method: "POST", options: { method: "POST", body: { user: { id: "u1", attributes: {} } } } },
  { method: "POST without a body", options: { method: "POST" } },
])("given an evaluation by $method", ({ options }) => {
  const evaluate = (query: string) =>
    call(`${edge.url}/api/v1/sdk/evaluate${query}`, { ...options, key: key.text });

  it("returns an enabled flag", async () => {
    const { status, body, headers } = await evaluate("?key=alpha");
    expect(status).toBe(200);
    expect(body).toEqual({ key: "alpha", value: true, variation: "on", reason: "static" });
    expect(headers.get("cache-control")).toBe("private, no-cache");
    expect(headers.get("vary")).toContain("Authorization");
  });

  it("returns a disabled flag like any other", async () => {
    const { status, body } = await evaluate("?key=beta&user_id=u1");
    expect(status).toBe(200);
    expect(body).toEqual({ key: "beta", value: false, variation: "off", reason: "disabled" });
  });

  it.each([
    ["an unknown flag", "?key=gamma", 404, "NOT_FOUND_001"],
    ["a flag of another environment", "?key=foreign", 404, "NOT_FOUND_001"],
    ["no flag", "", 400, "VALIDATION_001"],
    ["an invalid key", "?key=a%2Fb%20", 404, "NOT_FOUND_001"],
    ["an empty key", "?key=", 404, "NOT_FOUND_001"],
    ["two flags", "?key=alpha&key=beta", 400, "VALIDATION_001"],
    ["a query with invalid UTF-8", "?key=%ff", 400, "VALIDATION_001"],
  ])("rejects %s", async (_name, query, status, code) => {
    const answered = await evaluate(query);
    expect(answered.status).toBe(status);
    expect(answered.body.error.code).toBe(code);
    expect(answered.headers.get("access-control-allow-origin")).toBe("*");
  });
});

describe("given GET with a body", () => {
  async function get(path: string, headers: Record<string, string>, body: string) {
    const outgoing = request(`${edge.url}/api/v1/sdk/${path}`, {
      headers: { authorization: `Bearer ${key.text}`, ...headers },
    });
    outgoing.end(body);
    const [response] = await once(outgoing, "response");
    let text = "";
    for await (const chunk of response) text += chunk;
    return { status: response.statusCode, body: JSON.parse(text) };
  }
  const json = { "content-type": "application/json" };
  const ofLength = (body: string) => ({ ...json, "content-length": String(body.length) });
  const inGermany = '{"country":"DE"}';

  it.each([
    ["of a known length", ofLength(inGermany)],
    ["in chunks", { ...json, "transfer-encoding": "chunked" }],
  ])("reads the context from a body %s", async (_how, headers) => {
    const one = await get("evaluate?key=germany", headers, inGermany);
    expect(one).toMatchObject({ status: 200, body: { value: true } });
    const all = await get("flags", headers, inGermany);
    expect(all).toMatchObject({ status: 200, body: { flags: { germany: true } } });
  });

  it.each([
    ["JSON", { ...json, "content-length": "0" }],
    ["another type", { "content-type": "text/plain", "content-length": "0" }],
    ["JSON in chunks", { ...json, "transfer-encoding": "chunked" }],
    ["another type in chunks", { "content-type": "text/plain", "transfer-encoding": "chunked" }],
  ])("treats an empty body of %s as no body", async (_type, headers) => {
    expect((await get("evaluate?key=alpha", headers, "")).status).toBe(200);
  });

  it.each([
    ["broken JSON", '{"country":', json, 400],
    ["an object as an attribute", '{"country":{}}', json, 400],
    ["another type", "country=DE", { "content-type": "text/plain" }, 415],
    ["more than 64 KiB", JSON.stringify({ padding: "x".repeat(64 * 1024) }), json, 413],
  ])("rejects %s like on POST", async (_name, body, type, status) => {
    for (const framing of [{ "content-length": String(body.length) }, chunked])
      expect((await get("evaluate?key=alpha", { ...type, ...framing }, body)).status).toBe(status);
  });

  const chunked = { "transfer-encoding": "chunked" };
});

import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

const key = apiKey();
let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([
    flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true }),
    flagEntry({ flag_id: id("flag", 2), key: "beta", enabled: false }),
    flagEntry({ flag_id: id("flag", 3), key: "foreign", environment_id: id("env", 2) }),
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

  it("answers an enabled flag", async () => {
    const { status, body, headers } = await evaluate("?key=alpha");
    expect(status).toBe(200);
    expect(body).toEqual({ key: "alpha", value: true, variation: "on", reason: "static" });
    expect(headers.get("cache-control")).toBe("private, no-cache");
    expect(headers.get("vary")).toContain("Authorization");
  });

  it("answers a disabled flag like any other", async () => {
    const { status, body } = await evaluate("?key=beta&user_id=u1");
    expect(status).toBe(200);
    expect(body).toEqual({ key: "beta", value: false, variation: "off", reason: "disabled" });
  });

  it.each([
    ["an unknown flag", "?key=gamma", 404, "NOT_FOUND_001"],
    ["a flag of another environment", "?key=foreign", 404, "NOT_FOUND_001"],
    ["no flag", "", 400, "VALIDATION_001"],
    ["a key that cannot be one", "?key=%20", 400, "VALIDATION_001"],
    ["two flags", "?key=alpha&key=beta", 400, "VALIDATION_001"],
    ["a query that is no UTF-8", "?key=%ff", 400, "VALIDATION_001"],
  ])("refuses %s", async (_name, query, status, code) => {
    const answered = await evaluate(query);
    expect(answered.status).toBe(status);
    expect(answered.body.error.code).toBe(code);
    expect(answered.headers.get("access-control-allow-origin")).toBe("*");
  });
});

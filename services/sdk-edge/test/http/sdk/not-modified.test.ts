import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

/** Users of one key with different values, and therefore different ETags. */
const key = apiKey();
let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([
    key.entry,
    flagEntry({
      enabled: true,
      targeting_rules: [{ conditions: [{ attribute: "plan", operator: "equals", value: "pro" }] }],
    }),
  ]);
});
afterAll(() => edge.stop());

describe.each([
  { endpoint: "/api/v1/sdk/flags", body: (user: object) => user },
  { endpoint: "/ofrep/v1/evaluate/flags", body: (context: object) => ({ context }) },
])("given clients of $endpoint with the current values", ({ endpoint, body }) => {
  it("sends 304 with the ETag of each user's values", async () => {
    const ask = (plan: string, headers = {}) =>
      call(edge.url + endpoint, { key: key.text, method: "POST", body: body({ plan }), headers });
    const etagOf = async (plan: string) => (await ask(plan)).headers.get("etag") ?? "";
    const etags = { pro: await etagOf("pro"), free: await etagOf("free") };
    expect(etags.pro).not.toBe(etags.free);
    for (const plan of ["pro", "free", "pro"] as const) {
      const { status, headers } = await ask(plan, { "if-none-match": etags[plan] });
      expect(status).toBe(304);
      expect(headers.get("etag")).toBe(etags[plan]);
    }
  });
});

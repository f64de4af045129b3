import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id, organizationWith } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

/** Tests of reader keys, with which applications on servers read values and rules and report usage. */
const reader = apiKey({ key_kind: "reader", environment_only: true });
const reports: string[] = [];
let edge: EdgeServer;

beforeAll(async () => {
  const flag = flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true });
  edge = await startEdgeServer([...organizationWith({}), reader.entry, flag], {
    reportsPerSecond: 0.001,
    publishReport: async (organizationId) => {
      reports.push(organizationId);
      return "stored";
    },
  });
});
afterAll(() => edge.stop());

const ask = (path: string, body?: object) =>
  call(edge.url + path, { key: reader.text, ...(body && { method: "POST", body }) });

describe("given a reader key", () => {
  it("reads values, one value with its explanation, and OFREP", async () => {
    expect((await ask("/api/v1/sdk/flags")).body).toMatchObject({ flags: { alpha: true } });
    const explained = await ask("/api/v1/sdk/evaluate?key=alpha&explain=true");
    expect(explained.body).toMatchObject({ key: "alpha", value: true, trace: { enabled: true } });
    const evaluated = await ask("/ofrep/v1/evaluate/flags/alpha", { context: {} });
    expect(evaluated.body).toMatchObject({ key: "alpha", value: true });
  });

  it("reads the rules, and their stream", async () => {
    const rules = await ask("/api/v1/sdk/ruleset?format=2");
    expect(rules.body).toMatchObject({ flags: { alpha: expect.anything() } });
    const stream = await fetch(`${edge.url}/api/v1/sdk/ruleset/stream?format=2`, {
      headers: { authorization: `Bearer ${reader.text}` },
    });
    expect(stream.status).toBe(200);
    await stream.body?.cancel();
  });

  it("reports usage, within the limit of its organization", async () => {
    const now = new Date().toISOString();
    const report = { period: { start: now, end: now }, flags: { alpha: { true: 1 } } };
    const statuses = [];
    for (let time = 0; time < 2; time++)
      statuses.push((await ask("/api/v1/sdk/usage", report)).status);
    expect(statuses).toEqual([202, 429]);
    expect(reports).toEqual([id("org")]);
  });
});

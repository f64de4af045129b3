import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

const key = apiKey();
let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer();
});
afterAll(() => edge.stop());

describe("given an edge without a snapshot", () => {
  it.each([
    "/api/v1/sdk/flags",
    "/api/v1/sdk/evaluate?key=checkout",
    "/api/v1/sdk/stream",
    "/api/v1/sdk/ruleset?format=2",
    "/api/v1/sdk/ruleset/stream?format=2",
  ])("answers %s with 503 and Retry-After, and closes the connection", async (path) => {
    const { status, body, headers } = await call(edge.url + path, { key: key.text });
    expect(status).toBe(503);
    expect(body.error.code).toBe("SERVER_002");
    expect(headers.get("connection")).toBe("close");
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("access-control-allow-origin")).toBe("*");
  });

  it("is not ready until it receives the snapshot", async () => {
    expect(edge.edge.readiness()).toEqual({ ready: false, source: "none", stale_seconds: 0 });
    edge.holder.replace(id("epoch"), [key.entry, flagEntry({ enabled: true })]);
    expect(edge.edge.readiness()).toEqual({ ready: true, source: "nats", stale_seconds: 0 });
    const { body } = await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text });
    expect(body).toEqual({ flags: { checkout: true } });
  });
});

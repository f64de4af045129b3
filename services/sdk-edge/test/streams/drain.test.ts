import { call, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

const key = apiKey();
const headers = { authorization: `Bearer ${key.text}` };
let edge: EdgeServer;

beforeEach(async () => {
  edge = await startEdgeServer([key.entry, flagEntry()]);
});
afterEach(() => edge.stop());

describe("given an edge that shuts down", () => {
  it("sends each client a retry time before it closes the stream", async () => {
    const response = await fetch(`${edge.url}/api/v1/sdk/stream`, { headers });
    await edge.edge.drain();
    const text = await response.text();
    expect(text).toMatch(/retry: \d+\n\n$/);
    expect(text.match(/retry:/g)).toHaveLength(2);
  });

  it("rejects new streams with 503 and Retry-After", async () => {
    const stream = await openEventStream(`${edge.url}/api/v1/sdk/stream`, headers);
    const draining = edge.edge.drain();
    const {
      status,
      headers: answered,
      body,
    } = await call(`${edge.url}/api/v1/sdk/stream`, {
      key: key.text,
    });
    expect(status).toBe(503);
    expect(body.error.code).toBe("SERVER_002");
    expect(answered.get("retry-after")).not.toBeNull();
    await draining;
    await stream.ended;
  });

  it("keeps serving polling clients, and closes their connections", async () => {
    await openEventStream(`${edge.url}/api/v1/sdk/stream`, headers);
    const draining = edge.edge.drain();
    const { status, headers: answered } = await call(`${edge.url}/api/v1/sdk/flags`, {
      key: key.text,
    });
    expect(status).toBe(200);
    expect(answered.get("connection")).toBe("close");
    await draining;
  });
});

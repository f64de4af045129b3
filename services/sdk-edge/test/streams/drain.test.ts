import { setTimeout as delay } from "node:timers/promises";
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
  it("ends its streams over a few seconds, not all together", async () => {
    const endedAtMs: number[] = [];
    const startedAtMs = performance.now();
    const streams = await Promise.all(
      Array.from({ length: 60 }, () => openEventStream(`${edge.url}/api/v1/sdk/stream`, headers)),
    );
    const ended = streams.map(async (stream) => {
      await stream.ended;
      endedAtMs.push(performance.now() - startedAtMs);
    });
    const [threeSecondsMs] = await Promise.all([sixtyPausesMs(), edge.edge.drain()]);
    await Promise.all(ended);
    const [first = 0, last = 0] = [endedAtMs.at(0), endedAtMs.at(-1)];
    expect(last - first).toBeGreaterThan(2_000);
    expect(last - first).toBeLessThan((5 / 3) * threeSecondsMs);
  });

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

/** Measures the sixty pauses of 50 ms that the edge makes. Each pause can end late on a busy machine. */
async function sixtyPausesMs(): Promise<number> {
  const begunMs = performance.now();
  for (let count = 0; count < 60; count += 1) await delay(50);
  return performance.now() - begunMs;
}

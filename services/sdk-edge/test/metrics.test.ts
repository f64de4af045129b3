import { call, eventually, openEventStream } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id, organizationEntry } from "./builders.ts";
import { type EdgeServer, startEdgeServer } from "./edge-server.ts";

const key = apiKey();
let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([
    key.entry,
    organizationEntry(),
    flagEntry(),
    deletedFlag(2, id("flag", 2)),
  ]);
});
afterAll(() => edge.stop());

describe("given a running edge", () => {
  it("reports the entries and the age of its snapshot", async () => {
    expect(await edge.metric('snapshot_entries{kind="flag"')).toBe(1);
    expect(await edge.metric('snapshot_entries{kind="key"')).toBe(1);
    expect(await edge.metric('snapshot_entries{kind="organization"')).toBe(1);
    expect(await edge.metric('snapshot_entries{kind="deleted"')).toBe(1);
    edge.passTime(5_000);
    expect(await edge.metric("snapshot_age_seconds")).toBeGreaterThanOrEqual(5);
    edge.passTime(-5_000);
  });

  it("counts its responses", async () => {
    const ask = (headers = {}) => call(`${edge.url}/api/v1/sdk/flags`, { key: key.text, headers });
    await ask();
    await ask({ "if-none-match": "*" });
    await call(`${edge.url}/api/v1/sdk/evaluate?key=checkout`, { key: key.text });
    expect(await edge.metric('sdk_responses_total{endpoint="flags",status="200"')).toBe(1);
    expect(await edge.metric('sdk_responses_total{endpoint="flags",status="304"')).toBe(1);
    expect(await edge.metric('sdk_responses_total{endpoint="evaluate",status="200"')).toBe(1);
  });

  it("counts its streams, their events and the causes of their end", async () => {
    const headers = { authorization: `Bearer ${key.text}` };
    const stream = await openEventStream(`${edge.url}/api/v1/sdk/stream`, headers);
    expect(await edge.metric("streams_open{")).toBe(1);
    await edge.feed(flagEntry({ version: 2, enabled: true }));
    await eventually(() => stream.events.filter(({ event }) => event === "flags").length === 2);
    expect(await edge.metric('stream_events_sent_total{event="flags"')).toBe(2);
    expect(await edge.metric('stream_events_sent_total{event="heartbeat"')).toBeGreaterThanOrEqual(
      1,
    );
    stream.close();
    await eventually(async () => (await edge.metric('streams_closed_total{cause="client"')) === 1);
    expect(await edge.metric("streams_open{")).toBe(0);
  });

  it("measures the propagation time of changes, except those of a full read", async () => {
    const before = await edge.metric("change_propagation_seconds_count");
    const quickOnes = () => edge.metric('change_propagation_seconds_bucket{le="0.025"');
    const quickBefore = await quickOnes();
    const committedAt = new Date(Date.now() - 40).toISOString();
    await edge.feed(flagEntry({ version: 3, committed_at: committedAt }));
    expect(await edge.metric("change_propagation_seconds_count")).toBe(before + 1);
    expect(await quickOnes()).toBe(quickBefore);
    edge.holder.replace(id("epoch", 2), [key.entry, flagEntry({ version: 4 })]);
    expect(await edge.metric("change_propagation_seconds_count")).toBe(before + 1);
  });
});

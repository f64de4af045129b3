import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id, revokedKey } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { askAll, listen, streamAddress, tokenSecret } from "./asking.ts";

const hourMs = 60 * 60 * 1_000;
const key = apiKey();
const otherEnvApiKey = apiKey({ environment_id: id("env", 2) });
const opened: EventStream[] = [];
let edge: EdgeServer;
let version = 1;

beforeAll(async () => {
  edge = await startEdgeServer([key.entry, otherEnvApiKey.entry, longAgo(1), longAgo(2)], {
    streamTokenSecret: tokenSecret,
  });
});
afterEach(() => {
  for (const stream of opened.splice(0)) stream.close();
});
afterAll(() => edge.stop());

/** Returns a flag with an old change. After a recent or future change, such as the builders', new streams refetch. */
function longAgo(number: number, fields: Parameters<typeof flagEntry>[0] = {}) {
  const committedAt = new Date(Date.UTC(2025, 0, 1) + (fields.version ?? 1) * 1_000);
  return flagEntry({
    flag_id: id("flag", number),
    key: `flag-${number}`,
    committed_at: committedAt.toISOString(),
    ...fields,
  });
}

const change = (environmentId = id("env")) => {
  version += 1;
  return edge.feed(
    longAgo(1, { environment_id: environmentId, version, enabled: version % 2 === 0 }),
  );
};

async function openStream(keyText = key.text, headers: Record<string, string> = {}) {
  const stream = await listen(edge, keyText, headers);
  opened.push(stream);
  if (stream.status === 200) await eventually(() => stream.events.length > 0);
  return stream;
}

describe("given a new stream", () => {
  it("sends events to pages of any origin, starting with the tag and no refetch", async () => {
    const stream = await openStream();
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "access-control-allow-origin": "*",
    });
    expect(stream.events).toEqual([
      {
        event: "message",
        id: expect.stringMatching(/^[0-9a-z]+-[\w-]{22}$/),
        data: { type: "connected" },
      },
    ]);
  });

  it("starts with the retry time", async () => {
    const response = await fetch(await streamAddress(edge, key.text));
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(new TextDecoder().decode(value)).toMatch(/^retry: 3750\n\n/);
    await reader?.cancel();
  });

  it("sends a refetch immediately if the client has missed a change", async () => {
    const stream = await openStream(key.text, { "last-event-id": "k0-AAAAAAAAAAAAAAAAAAAAAA" });
    expect(stream.events[0]).toMatchObject({ data: { type: "refetchEvaluation" } });
  });

  it("sends no refetch if the client has missed no change", async () => {
    const [first] = (await openStream()).events;
    const stream = await openStream(key.text, { "last-event-id": first?.id as string });
    expect(stream.events[0]).toMatchObject({ id: first?.id, data: { type: "connected" } });
  });

  it("sends a refetch to new clients shortly after a change, which they can have missed", async () => {
    const committedAt = new Date(Date.now() - 5_000).toISOString();
    const recent = { environment_id: id("env", 2), committed_at: committedAt };
    await edge.feed(longAgo(3, recent));
    const stream = await openStream(otherEnvApiKey.text);
    expect(stream.events[0]).toMatchObject({ data: { type: "refetchEvaluation" } });
    edge.passTime(12_000);
    const later = await openStream(otherEnvApiKey.text);
    expect(later.events[0]).toMatchObject({ data: { type: "connected" } });
  });
});

describe("given a change", () => {
  it("sends a refetch to every stream of the environment, with a tag for the refetch request", async () => {
    const streams = await Promise.all([openStream(), openStream()]);
    const other = await openStream(otherEnvApiKey.text);
    await change();
    for (const stream of streams) {
      await eventually(() => stream.events.length === 2);
      const [, sent] = stream.events;
      expect(sent).toEqual({
        event: "message",
        id: expect.any(String),
        data: { type: "refetchEvaluation", etag: sent?.id },
      });
      const query = `?flagConfigEtag=${encodeURIComponent(sent?.id as string)}`;
      expect((await askAll(edge, key.text, {}, { query })).status).toBe(200);
    }
    expect(streams[0]?.events[1]).toEqual(streams[1]?.events[1]);
    expect(other.events).toHaveLength(1);
  });

  it("sends a refetch for changed rules and for deletions too, each with its own tag", async () => {
    const stream = await openStream();
    const rules = [{ conditions: [], value: true }];
    version += 1;
    await edge.feed(longAgo(2, { version, targeting_rules: rules }));
    await eventually(() => stream.events.length === 2);
    version += 1;
    await edge.feed(deletedFlag(version, id("flag", 2)));
    await eventually(() => stream.events.length === 3);
    expect(new Set(stream.events.map((event) => event.id)).size).toBe(3);
  });

  it("is visible in the values when the refetch arrives", async () => {
    const stream = await openStream();
    const before = (await askAll(edge, key.text)).body.flags[0].value as boolean;
    await change();
    await eventually(() => stream.events.length === 2);
    expect((await askAll(edge, key.text)).body.flags[0].value).toBe(!before);
  });
});

describe("given the token in the URL", () => {
  it("opens no stream after a day, while open streams stay and a new token is offered", async () => {
    const aging = await startEdgeServer([key.entry, longAgo(1)], {
      streamTokenSecret: tokenSecret,
    });
    const address = await streamAddress(aging, key.text);
    const stream = await openEventStream(address, {});
    aging.passTime(24 * hourMs);
    expect((await call(address)).status).toBe(401);
    await aging.feed(longAgo(1, { version: 2 }));
    await eventually(() => stream.events.length === 2);
    const again = await listen(aging, key.text);
    expect(again.status).toBe(200);
    again.close();
    stream.close();
    await aging.stop();
  });

  it("grants access only to the stream, and an API key does not open the stream", async () => {
    const address = new URL(await streamAddress(edge, key.text));
    const token = address.searchParams.get("token") as string;
    const body = {};
    const invalidRequests = [
      await askAll(edge, token),
      await call(`${edge.url}/ofrep/v1/evaluate/flags?token=${token}`, { method: "POST", body }),
      await call(`${edge.url}/api/v1/sdk/flags`, { key: token }),
      await call(`${edge.url}/api/v1/sdk/flags?token=${token}`),
      await call(`${edge.url}/api/v1/sdk/stream?token=${token}`),
      await call(`${edge.url}/ofrep/v1/evaluate/flags`, {
        method: "POST",
        body,
        headers: { "x-api-key": token },
      }),
      await call(`${edge.url}/ofrep/v1/stream?token=${key.text}`),
      await call(`${edge.url}/ofrep/v1/stream`, { key: key.text }),
      await call(`${edge.url}/ofrep/v1/stream`),
      await call(`${edge.url}/ofrep/v1/stream?token=`),
    ];
    for (const { status } of invalidRequests) expect(status).toBe(401);
  });

  it("becomes invalid with its key, which also ends its streams", async () => {
    const brief = apiKey();
    await edge.feed(brief.entry);
    const address = await streamAddress(edge, brief.text);
    const stream = await openStream(brief.text);
    await edge.feed(revokedKey(brief.keyId));
    await stream.ended;
    expect((await call(address)).status).toBe(401);
    expect(await edge.metric('streams_closed_total{cause="key_ended"')).toBe(1);
  });

  it("opens no stream after its key has expired", async () => {
    const expiring = apiKey({ expires_at: new Date(Date.now() + hourMs).toISOString() });
    const aging = await startEdgeServer([expiring.entry, key.entry], {
      streamTokenSecret: tokenSecret,
    });
    const address = await streamAddress(aging, expiring.text);
    const lasting = await streamAddress(aging, key.text);
    const stream = await openEventStream(address, {});
    expect(stream.status).toBe(200);
    aging.passTime(hourMs);
    const answered = await call(address);
    expect(answered.status).toBe(401);
    await stream.ended;
    const other = await openEventStream(lasting, {});
    expect(other.status).toBe(200);
    other.close();
    await aging.stop();
  });

  it("opens no stream after its key was replaced, while the successor's token does", async () => {
    const rotated = apiKey();
    const successor = apiKey();
    await edge.feed(rotated.entry, successor.entry);
    const address = await streamAddress(edge, rotated.text);
    const expiresAt = new Date(Date.now() - 1).toISOString();
    const { address: keyAddress, value } = rotated.entry;
    await edge.feed({
      address: keyAddress,
      value: { ...value, version: 2, expires_at: expiresAt },
    });
    expect((await call(address)).status).toBe(401);
    expect((await openStream(successor.text)).status).toBe(200);
  });

  it("opens no stream on an edge without a secret or with another secret", async () => {
    const { search } = new URL(await streamAddress(edge, key.text));
    for (const settings of [{}, { streamTokenSecret: `${tokenSecret}!` }]) {
      const other = await startEdgeServer([key.entry], settings);
      expect((await call(`${other.url}/ofrep/v1/stream${search}`)).status).toBe(401);
      await other.stop();
    }
  });

  it("opens a stream on any other edge with the same secret", async () => {
    const { search } = new URL(await streamAddress(edge, key.text));
    const other = await startEdgeServer([key.entry], { streamTokenSecret: tokenSecret });
    const stream = await openEventStream(`${other.url}/ofrep/v1/stream${search}`, {});
    expect(stream.status).toBe(200);
    stream.close();
    await other.stop();
  });

  it("never occurs in the log", async () => {
    const logging = await startEdgeServer([key.entry], { streamTokenSecret: tokenSecret });
    const address = new URL(await streamAddress(logging, key.text));
    const token = address.searchParams.get("token") as string;
    const stream = await openEventStream(address.href, {});
    const paths = [
      `/ofrep/v1/stream?token=${token}x`,
      `/ofrep/v1/nothing?token=${token}`,
      `/ofrep/v1/stream/%ff?token=${token}`,
      `/nothing?token=${token}`,
    ];
    for (const path of paths)
      for (const method of ["GET", "POST", "OPTIONS"]) await call(logging.url + path, { method });
    stream.close();
    await logging.stop();
    expect(logging.log()).not.toContain(token.slice(0, 40));
  });
});

describe("given an edge that is shutting down", () => {
  it("ends its streams, and opens no more", async () => {
    const stopping = await startEdgeServer([key.entry], { streamTokenSecret: tokenSecret });
    const address = await streamAddress(stopping, key.text);
    const stream = await openEventStream(address, {});
    const drained = stopping.edge.drain();
    await stream.ended;
    expect((await call(address)).status).toBe(503);
    await drained;
    await stopping.stop();
  });
});

import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, deletedEnvironment, deletedFlag, flagEntry, id, revokedKey } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

let edge: EdgeServer;
let version = 1;
const key = apiKey();
const otherEnvApiKey = apiKey({ environment_id: id("env", 2) });
const opened: EventStream[] = [];

beforeAll(async () => {
  edge = await startEdgeServer([
    flag(1, "alpha", true),
    flag(2, "beta", false),
    key.entry,
    otherEnvApiKey.entry,
  ]);
});
afterEach(() => {
  for (const stream of opened.splice(0)) stream.close();
});
afterAll(() => edge.stop());

describe("given a new stream", () => {
  it.each([
    { accept: "text/event-stream", path: "/api/v1/sdk/stream" },
    { accept: "application/json", path: "/api/v1/sdk/stream" },
    { accept: "text/event-stream", path: "/api/v1/sdk/stream?user_id=u1" },
  ])("starts with all values and a heartbeat ($accept, $path)", async ({ accept, path }) => {
    const askedAt = Math.floor(Date.now() / 1_000);
    const stream = await open(key.text, { accept }, path);
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "access-control-allow-origin": "*",
    });
    await eventually(() => stream.events.length > 1);
    expect(stream.events[0]).toEqual({
      event: "flags",
      data: { flags: { alpha: true, beta: false } },
      id: await currentTag(),
    });
    expect(stream.events[1]).toMatchObject({ event: "heartbeat" });
    const { timestamp } = (stream.events[1]?.data ?? {}) as { timestamp: number };
    expect(timestamp).toBeGreaterThanOrEqual(askedAt);
    expect(timestamp).toBeLessThanOrEqual(Date.now() / 1_000);
  });

  it("sends a retry time of three seconds plus jitter", async () => {
    const response = await fetch(`${edge.url}/api/v1/sdk/stream`, {
      headers: { authorization: `Bearer ${key.text}` },
    });
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(new TextDecoder().decode(value)).toMatch(/^retry: 3750\n\n/);
    await reader?.cancel();
  });

  it("omits the values if the client has them already", async () => {
    const stream = await open(key.text, { "last-event-id": await currentTag() });
    await eventually(() => stream.events.length > 0);
    expect(stream.events[0]).toMatchObject({ event: "heartbeat" });
  });

  it("sends the values if the client has other values", async () => {
    const stream = await open(key.text, { "last-event-id": '"another"' });
    await eventually(() => stream.events.length > 1);
    expect(stream.events[0]).toMatchObject({ event: "flags" });
  });

  it("sends an empty object for an environment without flags", async () => {
    const stream = await open(otherEnvApiKey.text);
    await eventually(() => stream.events.length > 1);
    expect(stream.events[0]).toMatchObject({ data: { flags: {} } });
  });

  it.each([
    ["no key", {}],
    ["an unknown key", { authorization: `Bearer ${apiKey().text}` }],
  ])("is rejected for %s", async (_name, headers) => {
    const response = await fetch(`${edge.url}/api/v1/sdk/stream`, { headers });
    expect(response.status).toBe(401);
  });
});

describe("given an open stream", () => {
  it("receives only changed values, with the tag of all values", async () => {
    const stream = await openAndSettle();
    version += 1;
    await edge.feed(flag(2, "beta", true));
    await eventually(() => flagsOf(stream).length === 2);
    expect(flagsOf(stream)[1]).toEqual({
      event: "flags",
      data: { flags: { beta: true } },
      id: await currentTag(),
    });
  });

  it("receives deleted flags together with changed values", async () => {
    version += 1;
    await edge.feed(flag(3, "gamma", true));
    const stream = await openAndSettle();
    version += 1;
    await edge.feed(deletedFlag(version, id("flag", 3)), flag(2, "beta", false));
    await eventually(() => flagsOf(stream).length === 2);
    expect(flagsOf(stream)[1]?.data).toEqual({ flags: { beta: false }, removed: ["gamma"] });
  });

  it("receives one event for many simultaneous changes", async () => {
    const stream = await openAndSettle();
    const changes = Array.from({ length: 20 }, () => {
      version += 1;
      return flag(1, "alpha", version % 2 === 0);
    });
    version += 1;
    await edge.feed(...changes, flag(2, "beta", true));
    await eventually(() => flagsOf(stream).length === 2);
    expect(flagsOf(stream)[1]?.data).toMatchObject({ flags: { beta: true } });
  });

  it("receives no event for changes that keep its values or affect other environments", async () => {
    const stream = await openAndSettle();
    version += 1;
    await edge.feed(
      flag(2, "beta", true),
      flagEntry({ flag_id: id("flag", 9), environment_id: id("env", 3), enabled: true }),
    );
    version += 1;
    await edge.feed(flag(2, "beta", false));
    await eventually(() => flagsOf(stream).length === 2);
    expect(flagsOf(stream)[1]?.data).toEqual({ flags: { beta: false } });
  });

  it("receives an event only after requests return the new values", async () => {
    let asked: Promise<unknown> | undefined;
    const stream = await open(key.text, {}, "/api/v1/sdk/stream", (event) => {
      const { flags } = event.data as { flags?: Record<string, boolean> };
      if (flags?.alpha === false && asked === undefined) asked = currentValues();
    });
    await eventually(() => stream.events.length > 1);
    version += 1;
    await edge.feed(flag(1, "alpha", false));
    expect(await eventually(() => asked)).toMatchObject({ flags: { alpha: false } });
  });
});

describe("given a stream whose key is revoked or expires", () => {
  it("is closed when the key is revoked", async () => {
    const ending = apiKey();
    await edge.feed(ending.entry);
    const stream = await open(ending.text);
    await edge.feed(revokedKey(ending.keyId));
    await stream.ended;
    expect(await edge.metric('streams_closed_total{cause="key_ended"')).toBe(1);
  });

  it("is closed when the environment of its key is deleted", async () => {
    const [ending, environment] = [apiKey({ environment_id: id("env", 3) }), id("env", 3)];
    const scope = { environment_id: environment, flag_id: id("flag", 9), key: "gone" };
    await edge.feed(ending.entry, flagEntry({ ...scope, enabled: true }));
    const stream = await open(ending.text);
    await edge.feed(deletedEnvironment(environment));
    await stream.ended;
    await edge.feed(flagEntry({ ...scope, version: 9 }));
    const answer = await call(`${edge.url}/api/v1/sdk/flags`, { key: ending.text });
    expect(answer.status).toBe(401);
    expect(edge.holder.snapshot?.environments.has(environment)).toBe(false);
  });

  it("is closed after the key expires", async () => {
    const ending = apiKey({ expires_at: new Date(Date.now() + 60_000).toISOString() });
    await edge.feed(ending.entry);
    const stream = await open(ending.text);
    edge.passTime(60_000);
    await stream.ended;
    edge.passTime(-60_000);
  });

  it("leaves the streams of other keys open", async () => {
    const ending = apiKey();
    await edge.feed(ending.entry);
    const staying = await openAndSettle();
    const leaving = await open(ending.text);
    await edge.feed(revokedKey(ending.keyId));
    await leaving.ended;
    version += 1;
    await edge.feed(flag(1, "alpha", version % 2 === 0), flag(2, "beta", version % 2 === 1));
    await eventually(() => flagsOf(staying).length > 1);
  });
});

function flag(number: number, flagKey: string, enabled: boolean) {
  return flagEntry({ flag_id: id("flag", number), key: flagKey, enabled, version });
}

async function open(
  text: string,
  headers: Record<string, string> = {},
  path = "/api/v1/sdk/stream",
  onEvent?: Parameters<typeof openEventStream>[2],
) {
  const all = { authorization: `Bearer ${text}`, ...headers };
  const stream = await openEventStream(edge.url + path, all, onEvent);
  opened.push(stream);
  return stream;
}

async function openAndSettle() {
  const stream = await open(key.text);
  await eventually(() => stream.events.length > 1);
  return stream;
}

/** Returns the `flags` events, without the heartbeats in between. */
const flagsOf = ({ events }: EventStream) => events.filter(({ event }) => event === "flags");

const ask = () => call(`${edge.url}/api/v1/sdk/flags`, { key: key.text });
const currentTag = async () => (await ask()).headers.get("etag") ?? "";
const currentValues = async () => (await ask()).body;

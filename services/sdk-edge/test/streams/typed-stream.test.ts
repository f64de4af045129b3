import type { FlagEntry } from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id, typedFlag } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

const key = apiKey();
const colors = { blue: '"bleu „é”"', red: '"red"' };
const forPro = { conditions: [{ attribute: "plan", operator: "equals" as const, value: "pro" }] };
const color = (version: number, values: Record<string, string> = colors, enabled = true) =>
  typedFlag("string", values, {
    ...{ flag_id: id("flag", 1), key: "color", version, enabled, targeting_rules: [forPro] },
  });
const alpha = (version: number, enabled: boolean) =>
  flagEntry({ flag_id: id("flag", 2), key: "alpha", enabled, version });
const limit = (json: string, fields: Partial<FlagEntry> = {}) =>
  typedFlag("number", { it: json }, { flag_id: id("flag", 3), key: "limit", ...fields });

let edge: EdgeServer;
const opened: EventStream[] = [];
beforeEach(async () => {
  edge = await startEdgeServer([key.entry, color(1), alpha(1, true), limit("1.0")]);
});
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await edge.stop();
});

const pro = { plan: "pro" };
const path = "/api/v1/sdk/stream?values=true";

async function open(user: object | undefined, headers: Record<string, string> = {}, from = path) {
  const stream = await openEventStream(edge.url + from, {
    ...{ authorization: `Bearer ${key.text}`, ...headers },
    ...(user && { "x-user-context": JSON.stringify(user) }),
  });
  opened.push(stream);
  await eventually(() => stream.events.length > 0);
  return stream;
}

const eventsOf = ({ events }: EventStream) => events.filter(({ event }) => event !== "heartbeat");
const tagFor = async (user: object) => {
  const headers = { "x-user-context": JSON.stringify(user) };
  const { headers: answered } = await call(`${edge.url}/api/v1/sdk/values`, {
    ...{ key: key.text, headers },
  });
  return answered.get("etag") ?? "";
};

const blue = { value: "bleu „é”", variation: "blue" };
const red = { value: "red", variation: "red" };
const on = { value: true, variation: "on" };
const one = { value: 1, variation: "it" };

describe("given a stream with values=true", () => {
  it("starts with the values in their types, with the tag of the same request", async () => {
    const stream = await open(pro);
    expect(eventsOf(stream)).toEqual([
      {
        event: "values",
        id: await tagFor(pro),
        data: { values: { alpha: on, color: blue, limit: one } },
      },
    ]);
  });

  it("omits the values if the client has them already", async () => {
    const stream = await open(pro, { "last-event-id": await tagFor(pro) });
    expect(stream.events[0]).toMatchObject({ event: "heartbeat" });
  });

  it("sends the values to a client that has the tag of the booleans", async () => {
    const headers = { "x-user-context": JSON.stringify(pro) };
    const flags = await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text, headers });
    const stream = await open(pro, { "last-event-id": flags.headers.get("etag") ?? "" });
    expect(eventsOf(stream)).toHaveLength(1);
  });

  it.each([
    ["with a context", pro],
    ["without a context", undefined],
  ])("sends changed and removed flags to a client %s", async (_name, user) => {
    const stream = await open(user);
    await edge.feed(alpha(2, false), deletedFlag(2, id("flag", 3)));
    await eventually(() => eventsOf(stream).length === 2);
    expect(eventsOf(stream)[1]).toEqual({
      event: "values",
      id: await tagFor(user ?? {}),
      data: { values: { alpha: { value: false, variation: "off" } }, removed: ["limit"] },
    });
  });

  it("sends another value of a variation to the users who get it", async () => {
    const [german, other] = [await open(pro), await open({ plan: "free" })];
    await edge.feed(color(2, { ...colors, blue: '"größe"' }));
    await edge.feed(alpha(2, false));
    await eventually(() => [german, other].every((stream) => eventsOf(stream).length > 1));
    await eventually(() => eventsOf(german).length === 3);
    expect(eventsOf(german)[1]?.data).toEqual({
      values: { color: { value: "größe", variation: "blue" } },
    });
    expect(eventsOf(other)).toHaveLength(2);
  });

  it("sends the caller's default", async () => {
    const stream = await open(pro);
    await edge.feed(limit("1.0", { version: 2, enabled: false, off_variation: null }));
    await eventually(() => eventsOf(stream).length === 2);
    expect(eventsOf(stream)[1]?.data).toEqual({
      values: { limit: { value: null, variation: null } },
    });
  });

  it("sends a change to a client whose context is evaluated in steps", async () => {
    const stream = await open({ ...pro, padding: "x".repeat(2_000) });
    await edge.feed(color(2, { ...colors, blue: '"größe"' }));
    await eventually(() => eventsOf(stream).length === 2);
    expect(eventsOf(stream)[1]).toEqual({
      event: "values",
      id: await tagFor(pro),
      data: { values: { color: { value: "größe", variation: "blue" } } },
    });
  });

  it("rejects another value than true or false", async () => {
    const { status, body } = await call(`${edge.url}/api/v1/sdk/stream?values=yes`, {
      key: key.text,
    });
    expect(status).toBe(400);
    expect(body.error.code).toBe("VALIDATION_001");
  });
});

describe.each(["/api/v1/sdk/stream", "/api/v1/sdk/stream?values=false"])("given %s", (from) => {
  it("sends typed flags as booleans, only when a user is no longer in or out", async () => {
    const stream = await open(pro, {}, from);
    const beside = await open(pro);
    await edge.feed(color(2, { ...colors, blue: '"größe"' }));
    await edge.feed(color(3, { ...colors, blue: '"größe"' }, false));
    await eventually(() => eventsOf(beside).length === 3 && eventsOf(stream).length > 1);
    expect(eventsOf(stream).map(({ event, data }) => [event, data])).toEqual([
      ["flags", { flags: { alpha: true, color: true, limit: true } }],
      ["flags", { flags: { color: false } }],
    ]);
    expect(eventsOf(beside)[2]?.data).toEqual({ values: { color: red } });
  });

  it("sends each client without a context the events that it requested", async () => {
    const streams = [await open(undefined, {}, from), await open(undefined)];
    await edge.feed(alpha(2, false));
    await eventually(() => streams.every((stream) => eventsOf(stream).length === 2));
    expect(streams.map((stream) => eventsOf(stream)[1]?.data)).toEqual([
      { flags: { alpha: false } },
      { values: { alpha: { value: false, variation: "off" } } },
    ]);
  });
});

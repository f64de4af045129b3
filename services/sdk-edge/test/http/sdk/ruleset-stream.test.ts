import { call, type EventStream, eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id, revokedKey, typedFlag } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { ask, listen } from "./asking.ts";

const server = apiKey({ key_kind: "server" });
const client = apiKey();
const flag = (number: number, version = 1) =>
  flagEntry({
    flag_id: id("flag", number),
    key: `flag-${number}`,
    version,
    enabled: version % 2 === 0,
  });
/** A flag with 200 kB of rules. */
const largeFlag = (number: number) => {
  const value = Array.from({ length: 20 }, () => "x".repeat(10_000));
  const condition = { attribute: "id", operator: "in", value } as const;
  return flagEntry({
    ...{ flag_id: id("flag", number), key: `flag-${number}` },
    targeting_rules: [{ conditions: [condition] }],
  });
};
const rulesOf = (version: number) => ({
  ...{ enabled: version % 2 === 0, rollout_percentage: 100, targeting_rules: [], version },
});
let edge: EdgeServer;
const opened: EventStream[] = [];

beforeEach(async () => {
  edge = await startEdgeServer([server.entry, client.entry, flag(1), flag(2)], {
    countsUsage: true,
  });
});
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await edge.stop();
});

/** Opens a stream and waits for its first heartbeat, which follows the first event. */
async function open(lastEventId?: string): Promise<EventStream> {
  const stream = await listen(edge, server.text, lastEventId);
  opened.push(stream);
  await eventually(() => stream.events.some(({ event }) => event === "heartbeat"));
  return stream;
}

const rulesets = ({ events }: EventStream) => events.filter(({ event }) => event === "ruleset");
const nextRuleset = async (stream: EventStream, number: number) =>
  eventually(() => rulesets(stream)[number]);
const etag = async () => (await ask(edge, server.text)).headers.get("etag") ?? "";

describe("given a stream without an earlier one", () => {
  it("sends everything, and then the changed flags", async () => {
    const stream = await open();
    expect(stream.headers["content-type"]).toBe("text/event-stream");
    expect(stream.headers["cache-control"]).toBe("no-store");
    expect(stream.headers["x-accel-buffering"]).toBe("no");
    expect(rulesets(stream)).toEqual([
      {
        event: "ruleset",
        id: await etag(),
        data: {
          ...{ format: 2, project_id: id("project"), environment_id: id("env"), full: true },
          flags: { "flag-1": rulesOf(1), "flag-2": rulesOf(1) },
        },
      },
    ]);
    await edge.feed(flag(2, 2));
    expect(await nextRuleset(stream, 1)).toEqual({
      event: "ruleset",
      id: await etag(),
      data: { format: 2, environment_id: id("env"), flags: { "flag-2": rulesOf(2) } },
    });
  });

  it("sends new and removed flags", async () => {
    const stream = await open();
    await edge.feed(flag(3), deletedFlag(2, id("flag", 1)));
    const { data } = await nextRuleset(stream, 1);
    expect(data).toEqual({
      format: 2,
      environment_id: id("env"),
      flags: { "flag-3": rulesOf(1) },
      removed: ["flag-1"],
    });
  });

  it("sends a typed flag whose variations changed, with its state and the texts of its values", async () => {
    const typed = { flag_id: id("flag", 2), key: "flag-2" };
    const stream = await open();
    const values = ['{"b":1,"1":2}', '{"b":1.0,"1":2}'];
    for (const [index, json] of values.entries()) {
      await edge.feed(typedFlag("object", { it: json }, { ...typed, version: index + 2 }));
      const { id: tag, data } = await nextRuleset(stream, index + 1);
      expect(tag).toBe(await etag());
      expect(data).toMatchObject({
        flags: {
          "flag-2": {
            ...{ value_type: "object", variations: [{ key: "it", value: JSON.parse(json) }] },
            ...{ serve: { variation: "it" }, off_variation: "it", needs: ["values"] },
            version: index + 2,
          },
        },
      });
    }
  });

  it("sends a change that arrives while the first event is prepared", async () => {
    // So many rules are serialized in several time slices.
    await edge.feed(...Array.from({ length: 60 }, (_, number) => largeFlag(10 + number)));
    edge.edge.app.server.prependOnceListener("request", () => edge.holder.apply(flag(2, 2)));
    const stream = await open();
    const { data } = await nextRuleset(stream, 1);
    expect(data).toEqual({ format: 2, environment_id: id("env"), flags: { "flag-2": rulesOf(2) } });
    expect(rulesets(stream)[0]?.data).toMatchObject({ flags: { "flag-2": rulesOf(1) } });
  });

  it("receives no change of another environment", async () => {
    const stream = await open();
    await edge.feed(flagEntry({ environment_id: id("env", 2), key: "elsewhere" }));
    await edge.feed(flag(2, 2));
    const { data } = await nextRuleset(stream, 1);
    expect(Object.keys((data as { flags: object }).flags)).toEqual(["flag-2"]);
  });

  it("counts one request and the sent events", async () => {
    const stream = await open();
    await edge.feed(flag(2, 2));
    await nextRuleset(stream, 1);
    expect(edge.counting?.take()?.environments[0]?.requests).toMatchObject({
      ...{ ruleset: 0, ruleset_stream: 1, stream: 0 },
    });
    expect(await edge.metric('stream_events_sent_total{event="ruleset"')).toBe(2);
  });
});

describe("given a client that reconnects", () => {
  it("receives no rules if it has the current ones, and later the changes", async () => {
    const stream = await open(await etag());
    expect(stream.events.map(({ event }) => event)).toEqual(["heartbeat"]);
    await edge.feed(flag(1, 2));
    const { data } = await nextRuleset(stream, 0);
    expect(data).toEqual({ format: 2, environment_id: id("env"), flags: { "flag-1": rulesOf(2) } });
  });

  it("receives one event with what it has missed", async () => {
    const known = await etag();
    await edge.feed(flag(1, 2));
    await edge.feed(flag(1, 3), flag(3));
    await edge.feed(deletedFlag(2, id("flag", 2)));
    const stream = await open(known);
    expect(rulesets(stream)).toEqual([
      {
        event: "ruleset",
        id: await etag(),
        data: {
          format: 2,
          environment_id: id("env"),
          flags: { "flag-1": rulesOf(3), "flag-3": rulesOf(1) },
          removed: ["flag-2"],
        },
      },
    ]);
  });

  it.each([
    ["is too old", async () => '"k0-AAAAAAAAAAAAAAAAAAAAAA"'],
    ["comes from no edge", async () => "nonsense"],
    [
      "precedes a full read",
      async () => {
        const known = await etag();
        const later = { committed_at: new Date(Date.parse("2027-02-01")).toISOString() };
        const replaced = flagEntry({ flag_id: id("flag", 1), key: "flag-1", version: 9, ...later });
        edge.holder.replace(id("epoch", 2), [server.entry, replaced]);
        return known;
      },
    ],
  ])("receives everything if its tag %s", async (_what, tag) => {
    const stream = await open(await tag());
    expect(rulesets(stream).map(({ data }) => data)).toEqual([
      expect.objectContaining({ full: true }),
    ]);
  });
});

describe("given a stream that ends", () => {
  it("closes when its key is revoked", async () => {
    const stream = await open();
    await edge.feed(revokedKey(server.keyId));
    await stream.ended;
    expect(await edge.metric('streams_closed_total{cause="key_ended"')).toBe(1);
  });

  it("ends with a retry time when the edge drains", async () => {
    const stream = await open();
    const draining = edge.edge.drain();
    await stream.ended;
    const rejected = await call(`${edge.url}/api/v1/sdk/ruleset/stream?format=2`, {
      key: server.text,
    });
    expect(rejected.status).toBe(503);
    await draining;
  });
});

describe("given a client key", () => {
  it("is rejected with 403, and counted", async () => {
    const { status, body } = await call(`${edge.url}/api/v1/sdk/ruleset/stream?format=2`, {
      key: client.text,
    });
    expect(status).toBe(403);
    expect(body.error.code).toBe("AUTH_002");
    expect(edge.counting?.take()?.environments[0]?.requests.ruleset_stream).toBe(1);
  });
});

import { once } from "node:events";
import { gunzipSync } from "node:zlib";
import {
  compileCheck,
  EvaluationResult,
  type FlagEntry,
  Ruleset,
  type TargetingRule,
} from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import {
  apiKey,
  audienceEntry,
  deletedChunk,
  flagEntry,
  id,
  listedAudience,
  organizationWith,
  sha256Of,
} from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { ask, bytesOf, listen } from "./asking.ts";

const server = apiKey({ key_kind: "server" });
const client = apiKey();
const otherEnvironment = apiKey({ key_kind: "server", environment_id: id("env", 2) });

const flag = (number: number, key: string, fields: Partial<FlagEntry> = {}) =>
  flagEntry({ flag_id: id("flag", number), key, enabled: true, ...fields });
const inAudience = (audience: string): TargetingRule[] => [{ conditions: [{ audience }] }];
const proPlan = [[{ attribute: "plan", operator: "equals" as const, value: "pro" }]];
const { audience, chunks } = listedAudience(["u1", "u2"], { match: proPlan });
const [chunk] = chunks as [(typeof chunks)[number]];

const flags = [
  flag(1, "for-beta", { targeting_rules: inAudience("beta") }),
  flag(2, "payments", { requires: [{ flag: "for-beta", is: "on" }] }),
  flag(3, "invoices", { requires: [{ flag: "payments", is: "on" }] }),
  flag(4, "plain"),
];

let edge: EdgeServer;
const opened: EventStream[] = [];
beforeEach(async () => {
  const keys = [server.entry, client.entry, otherEnvironment.entry];
  edge = await startEdgeServer([...organizationWith(), ...keys, ...flags, chunk, audience], {
    countsUsage: true,
  });
});
afterEach(async () => {
  for (const stream of opened.splice(0)) stream.close();
  await edge.stop();
});

const asUser = (user: object) => ({ "x-user-context": JSON.stringify(user) });
const get = (path: string, user: object = {}) =>
  call(`${edge.url}/api/v1/sdk/${path}`, { key: server.text, headers: asUser(user) });
const valuesFor = async (user: object) => (await get("flags", user)).body.flags;
const large = { padding: "x".repeat(2_000) };
const everyone = { "for-beta": true, payments: true, invoices: true, plain: true };
const nobody = { "for-beta": false, payments: false, invoices: false, plain: true };

describe("given flags that use an audience and require each other", () => {
  it.each([
    { user: { id: "u1" }, values: everyone },
    { user: { id: "u3", plan: "pro" }, values: everyone },
    { user: { id: "u3" }, values: nobody },
    { user: {}, values: nobody },
  ])("evaluates them for $user, in one step and in many", async ({ user, values }) => {
    expect(await valuesFor(user)).toEqual(values);
    expect(await valuesFor({ ...user, ...large })).toEqual(values);
  });

  it("names the reason of a flag that another one holds back", async () => {
    for (const user of [{ id: "u3" }, { id: "u3", ...large }]) {
      const { body } = await get("evaluate?key=invoices", user);
      expect(body).toEqual({
        ...{ key: "invoices", value: false, variation: "off" },
        reason: "prerequisite_failed",
      });
    }
  });

  it("explains the audience and the chain of requirements", async () => {
    const { body } = await get("evaluate?key=invoices&explain=true", { id: "u3", plan: "free" });
    expect(compileCheck(EvaluationResult)(body)).toMatchObject({ ok: true });
    const unmet = { is: "on", held: false, value: false, variation: "off" };
    expect(body.trace.requires).toEqual([
      {
        ...{ ...unmet, flag: "payments", reason: "prerequisite_failed" },
        because: [{ ...unmet, flag: "for-beta", reason: "default" }],
      },
    ]);
    const explained = await get("evaluate?key=for-beta&explain=true", { id: "u3", plan: "free" });
    expect(explained.body.trace.rules[0].conditions).toEqual([
      {
        ...{ audience: "beta", held: false, listed: false },
        alternatives: [
          {
            matched: false,
            conditions: [{ attribute: "plan", operator: "equals", held: false }],
          },
        ],
      },
    ]);
  });

  it("does not find a flag whose audience this edge cannot evaluate", async () => {
    await edge.feed(flag(5, "later", { targeting_rules: inAudience("unknown") }));
    expect((await get("evaluate?key=later")).status).toBe(404);
    expect(await valuesFor({})).not.toHaveProperty("later");
  });
});

describe("given a stream of values", () => {
  async function open(user: object): Promise<EventStream> {
    const headers = { authorization: `Bearer ${client.text}`, ...asUser(user) };
    const stream = await openEventStream(`${edge.url}/api/v1/sdk/stream`, headers);
    opened.push(stream);
    await eventually(() => stream.events.some(({ event }) => event === "heartbeat"));
    return stream;
  }
  const flagsOf = ({ events }: EventStream) => events.filter(({ event }) => event === "flags");

  it("sends the flags whose values a change of an audience changes, in one event", async () => {
    const [member, listed, other] = await Promise.all(
      [{ id: "u3", plan: "pro" }, { id: "u1" }, { id: "u3", plan: "free" }].map(open),
    );
    const free = [[{ attribute: "plan", operator: "equals" as const, value: "free" }]];
    const { audience } = listedAudience(["u1", "u2"], { match: free, version: 2 });
    await edge.feed(audience);
    await eventually(() =>
      [member, other].every((stream) => flagsOf(stream as EventStream).length === 2),
    );
    const { plain: _, ...dependents } = nobody;
    const { plain, ...gained } = everyone;
    expect(flagsOf(member as EventStream)[1]?.data).toEqual({ flags: dependents });
    expect(flagsOf(other as EventStream)[1]?.data).toEqual({ flags: gained });
    expect(flagsOf(listed as EventStream)).toHaveLength(1);
    const polled = await get("flags", { id: "u3", plan: "free" });
    expect(flagsOf(other as EventStream)[1]?.id).toBe(polled.headers.get("etag"));
  });

  it("sends a flag and its dependents in the same event", async () => {
    const stream = await open({ id: "u1" });
    await edge.feed(flag(1, "for-beta", { enabled: false, version: 2 }));
    await eventually(() => flagsOf(stream).length === 2);
    const { plain: _, ...dependents } = nobody;
    expect(flagsOf(stream)[1]?.data).toEqual({ flags: dependents });
  });
});

describe("given an audience whose chunk does not arrive", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Delivers an audience without its chunk, and advances the timers and the monotonic clock of the edge. */
  async function lackChunk(ms: number): Promise<void> {
    jest.useFakeTimers({
      doNotFake: [
        ...(["Date", "hrtime", "nextTick", "queueMicrotask"] as const),
        ...(["setImmediate", "clearImmediate", "setInterval", "clearInterval"] as const),
      ],
    });
    await edge.feed(listedAudience(["u3"], { version: 2 }).audience);
    jest.advanceTimersByTime(ms);
    jest.useRealTimers();
  }

  it("keeps the previous values for 30 s", async () => {
    expect(await valuesFor({ id: "u1" })).toEqual(everyone);
    await lackChunk(29_999);
    expect(await valuesFor({ id: "u1" })).toEqual(everyone);
  });

  it("removes the flags and notifies streams after 30 s", async () => {
    const stream = await listen(edge, server.text);
    opened.push(stream);
    await eventually(() => stream.events.length > 0);
    await lackChunk(30_000);
    expect(await valuesFor({ id: "u1" })).toEqual({ plain: true });
    const removal = await eventually(() =>
      stream.events.find(({ data }) => (data as { removed?: string[] }).removed !== undefined),
    );
    expect(removal.data).toMatchObject({
      ...{ flags: {}, removed: ["for-beta", "invoices", "payments"] },
      removed_audiences: ["beta"],
    });
    expect(removal.id).toBe((await ask(edge, server.text)).headers.get("etag"));
  });
});

describe("given a chunk with other bytes than its SHA-256 names", () => {
  it("keeps the previous values, and logs the chunk", async () => {
    expect(await valuesFor({ id: "u1" })).toEqual(everyone);
    const next = listedAudience(["u3"], { version: 2 });
    const data = Buffer.alloc(8).toString("base64");
    const damaged = next.chunks.map((each) => ({ ...each, value: { ...each.value, data } }));
    await edge.feed(...damaged, next.audience);
    expect(await valuesFor({ id: "u1" })).toEqual(everyone);
    expect(edge.log()).toContain("a chunk of a list is damaged");
    await edge.feed(
      ...next.chunks.map((each) => ({ ...each, value: { ...each.value, version: 3 } })),
    );
    expect(await valuesFor({ id: "u1" })).toEqual(nobody);
  });
});

describe("given a rule set with audiences", () => {
  it("contains the used audiences, and what an evaluator must know for each flag", async () => {
    await edge.feed(audienceEntry({ key: "unused", audience_id: id("audience", 2) }));
    const { body } = await ask(edge, server.text);
    const { flags, audiences } = Ruleset.parse(body);
    const { match, list } = audience.value as { match: unknown; list: unknown };
    expect(audiences).toEqual({ beta: { match, list } });
    expect(flags["for-beta"]?.needs).toEqual(["audiences", "lists"]);
    expect(flags.payments).toMatchObject({
      ...{ needs: ["requires"], requires: [{ flag: "for-beta", is: "on" }] },
    });
    expect(flags.plain).not.toHaveProperty("needs");
  });

  it("is the same in gzip", async () => {
    const match = [[{ attribute: "id", operator: "in" as const, value: "x".repeat(5_000) }]];
    await edge.feed(audienceEntry({ match, version: 2 }));
    const { bytes } = await bytesOf(edge, server.text, "gzip");
    const plain = await bytesOf(edge, server.text, "identity");
    expect(gunzipSync(bytes).equals(plain.bytes)).toBe(true);
    expect(Ruleset.parse(JSON.parse(plain.bytes.toString())).audiences).toEqual({
      beta: { match },
    });
  });

  it("has another ETag after a change of a used audience", async () => {
    const before = (await ask(edge, server.text)).headers.get("etag") ?? "";
    await edge.feed(audienceEntry({ key: "unused", audience_id: id("audience", 2) }));
    const headers = { "if-none-match": before };
    expect((await ask(edge, server.text, { headers })).status).toBe(304);
    await edge.feed(audienceEntry({ version: 2 }));
    const { status, body } = await ask(edge, server.text, { headers });
    expect(status).toBe(200);
    expect(body.audiences).toEqual({ beta: { match: [] } });
  });

  const rulesets = ({ events }: EventStream) => events.filter(({ event }) => event === "ruleset");
  async function open(lastEventId?: string): Promise<EventStream> {
    const stream = await listen(edge, server.text, lastEventId);
    opened.push(stream);
    await eventually(() => stream.events.some(({ event }) => event === "heartbeat"));
    return stream;
  }

  it("streams the audience that changed, and no flag with the same rules", async () => {
    const stream = await open();
    expect(rulesets(stream)[0]?.data).toMatchObject({ full: true, audiences: { beta: {} } });
    const changed = listedAudience(["u1", "u2"], { version: 2 }).audience;
    await edge.feed(changed);
    await eventually(() => rulesets(stream).length === 2);
    expect(rulesets(stream)[1]?.data).toEqual({
      ...{ format: 2, environment_id: id("env"), flags: {} },
      audiences: { beta: { match: [], list: (changed.value as { list: unknown }).list } },
    });
  });

  it("streams flags whose needs changed, audiences of first use, and those of no use any longer", async () => {
    const stream = await open();
    await edge.feed(audienceEntry({ version: 2, match: proPlan }));
    await eventually(() => rulesets(stream).length === 2);
    expect(rulesets(stream)[1]?.data).toMatchObject({
      ...{
        flags: { "for-beta": { needs: ["audiences"] } },
        audiences: { beta: { match: proPlan } },
      },
    });
    const other = audienceEntry({ key: "gamma", audience_id: id("audience", 2) });
    await edge.feed(
      other,
      flag(1, "for-beta", { targeting_rules: inAudience("gamma"), version: 2 }),
    );
    await eventually(() => rulesets(stream).length === 3);
    expect(rulesets(stream)[2]?.data).toMatchObject({
      ...{ flags: { "for-beta": {} }, audiences: { gamma: { match: [] } } },
      removed_audiences: ["beta"],
    });
  });

  it("sends a client that reconnects only what it has missed", async () => {
    const held = (await open()).events[0]?.id ?? "";
    await edge.feed(audienceEntry({ version: 2, match: proPlan }));
    await edge.feed(flag(4, "plain", { version: 2, enabled: false }));
    const { data } = rulesets(await open(held))[0] ?? {};
    expect(data).toMatchObject({ audiences: { beta: { match: proPlan } } });
    expect(Object.keys((data as { flags: object }).flags).sort()).toEqual(["for-beta", "plain"]);
    expect(data).not.toHaveProperty("full");
  });
});

describe("given a chunk of a list", () => {
  const fetchChunk = (key: string, sha256 = sha256Of(chunk)) =>
    fetch(`${edge.url}/api/v1/sdk/lists/${sha256}`, {
      headers: { authorization: `Bearer ${key}` },
    });

  it("returns its bytes with headers that let clients keep it, and counts no request", async () => {
    const response = await fetchChunk(server.text);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/octet-stream");
    expect(response.headers.get("cache-control")).toBe("private, max-age=31536000, immutable");
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.toString("base64")).toBe((chunk.value as { data: string }).data);
    expect(edge.counting?.take()?.environments).toEqual([]);
  });

  it.each([
    ["a client key", 403, () => fetchChunk(client.text)],
    ["an environment that does not use it", 404, () => fetchChunk(otherEnvironment.text)],
    ["an unknown hash", 404, () => fetchChunk(server.text, "0".repeat(64))],
    ["a malformed hash", 404, () => fetchChunk(server.text, "__proto__")],
  ])("rejects %s with %d", async (_what, status, fetched) => {
    expect((await fetched()).status).toBe(status);
  });

  it("is not found any longer when no flag uses the audience", async () => {
    await edge.feed(flag(1, "for-beta", { version: 2 }));
    expect((await fetchChunk(server.text)).status).toBe(404);
  });

  it("returns a chunk that a change has replaced, for a minute", async () => {
    const next = listedAudience(["u3"], { version: 2 });
    await edge.feed(...next.chunks, next.audience);
    expect((await fetchChunk(server.text)).status).toBe(200);
    await edge.feed(deletedChunk(chunk, 2));
    edge.passTime(59_000);
    expect((await fetchChunk(server.text)).status).toBe(200);
    expect((await fetchChunk(otherEnvironment.text)).status).toBe(404);
    edge.passTime(1_000);
    expect((await fetchChunk(server.text)).status).toBe(404);
  });

  it("does not return a replaced chunk when no flag uses the audience", async () => {
    await edge.feed(deletedChunk(chunk, 2), audienceEntry({ version: 2 }));
    await edge.feed(flag(1, "for-beta", { version: 2 }));
    expect((await fetchChunk(server.text)).status).toBe(404);
  });

  it("waits for a chunk that has not arrived yet", async () => {
    const next = listedAudience(["u3"], { version: 2 });
    const [later] = next.chunks as [(typeof chunks)[number]];
    const read = once(edge.edge.app.server, "request");
    const fetched = fetchChunk(server.text, sha256Of(later));
    await read;
    await edge.feed(later, next.audience);
    expect((await fetched).status).toBe(200);
  });
});

describe("given limits", () => {
  const chunkPath = `/api/v1/sdk/lists/${sha256Of(chunk)}`;

  async function statusesOf(
    paths: readonly string[],
    { monthly, perSecond }: { monthly: number; perSecond: number },
  ): Promise<number[]> {
    const organization = organizationWith({ requests_per_month: monthly });
    const limited = await startEdgeServer(
      [...organization, server.entry, ...flags, chunk, audience],
      { requestsPerSecond: perSecond, countsUsage: true },
    );
    try {
      const statuses: number[] = [];
      for (const path of paths) {
        const headers = { authorization: `Bearer ${server.text}` };
        statuses.push((await fetch(limited.url + path, { headers })).status);
      }
      return statuses;
    } finally {
      await limited.stop();
    }
  }

  it("sends chunks although the month is used up", async () => {
    const paths = ["/api/v1/sdk/flags", "/api/v1/sdk/flags", chunkPath];
    expect(await statusesOf(paths, { monthly: 1, perSecond: 100 })).toEqual([200, 429, 200]);
  });

  it("applies the rate limit of the key to chunks", async () => {
    const paths = [chunkPath, chunkPath, chunkPath];
    expect(await statusesOf(paths, { monthly: 100, perSecond: 2 })).toEqual([200, 200, 429]);
  });
});

describe("given a change of an audience", () => {
  it("measures its propagation time", async () => {
    const before = await edge.metric("change_propagation_seconds_count");
    expect(await edge.metric('snapshot_entries{kind="chunk"')).toBe(1);
    await edge.feed(audienceEntry({ version: 2 }));
    expect(await edge.metric("change_propagation_seconds_count")).toBe(before + 1);
    expect(await edge.metric('snapshot_entries{kind="audience"')).toBe(1);
    // An audience without a list has no chunks.
    expect(await edge.metric('snapshot_entries{kind="chunk"')).toBe(0);
    expect(await edge.metric("audience_list_entries")).toBe(0);
  });
});

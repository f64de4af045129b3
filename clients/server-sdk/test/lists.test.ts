import { readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, test } from "@jest/globals";
import type { Client, ClientEvents } from "../src/client.ts";
import { createClientOn } from "../src/create-client.ts";
import { createFakeClock, type FakeClock } from "./support/fake-clock.ts";
import { type Behavior, createFakeEdge, type FakeEdge } from "./support/fake-edge.ts";
import { createNetwork } from "./support/in-process-fetch.ts";
import { listOf } from "./support/lists.ts";
import type { ServedEdge } from "./support/serve-edge.ts";
import {
  endAll,
  newCacheFile,
  type Setup,
  serverKey,
  setUp,
  startClient,
} from "./support/setup.ts";

afterEach(endAll);

const beta = { targeting_rules: [{ conditions: [{ audience: "beta" }] }] };
const before = listOf(["ada", "bob"]);
const after = listOf(["ada", "eve"], { bits: 1 });

/** Publishes a list of the audience `beta`. Its chunks can be published later. */
function publish(edge: FakeEdge, { list, chunks }: typeof before, { withChunks = true } = {}) {
  if (withChunks) for (const [sha256, bytes] of chunks) edge.chunks.set(sha256, bytes);
  edge.changeAudience("beta", { match: [], list });
}

/** Starts a client of an edge with the flag `beta` and its list. */
function setUpBeta(prepare: (edge: FakeEdge) => void = () => undefined): Promise<Setup> {
  return setUp({}, (edge) => {
    publish(edge, before);
    edge.change("beta", beta);
    prepare(edge);
  });
}

/** Starts a client without sockets, of an edge with the flag `beta` and its list. */
function startInProcess(prepare: (edge: FakeEdge) => void = () => undefined) {
  const clock = createFakeClock();
  const edge = createFakeEdge();
  publish(edge, before);
  edge.change("beta", beta);
  prepare(edge);
  const { fetch } = createNetwork(() => edge);
  const platform = { fetch, clock, random: () => 0.5 };
  const client = createClientOn(platform, { baseUrl: "http://edge.test", serverKey, logger });
  return { clock, edge, client };
}

async function runWithHeartbeats(
  { clock, edge }: { clock: FakeClock; edge: FakeEdge },
  seconds: number,
): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await clock.run(1_000);
    edge.heartbeat();
  }
}

const isIn = (client: Client, id: string) => client.isEnabled("beta", { id });

/** Collects the keys of each event `change`. */
function changesOf(client: Client): string[][] {
  const changes: string[][] = [];
  client.on("change", ({ keys }) => void changes.push([...keys].sort()));
  return changes;
}

/** Waits until the client requested chunks this many times. */
const requests = (edge: FakeEdge, count: number) =>
  eventually(() => edge.of("list").length >= count);

describe("a list", () => {
  test("is loaded with the key of the client, each chunk once, before the client is ready", async () => {
    const { client, edge } = await setUp({}, (given) => {
      publish(given, after);
      given.change("beta", beta);
    });
    expect(await client.ready()).toBe(true);
    expect(isIn(client, "eve")).toBe(true);
    expect(isIn(client, "bob")).toBe(false);
    expect(
      edge
        .of("list")
        .map(({ path }) => path.slice(-64))
        .sort(),
    ).toEqual([...after.chunks.keys()].sort());
    for (const { headers } of edge.of("list"))
      expect(headers.authorization).toBe(`Bearer ${serverKey}`);
  });

  test("that no flag has causes no request", async () => {
    const { client, edge } = await setUp();
    await client.ready();
    expect(edge.of("list")).toEqual([]);
  });

  test("of a disabled flag delays nothing", async () => {
    const { client } = await setUpBeta((edge) => {
      edge.behave("list", "hang");
      edge.change("beta", { ...beta, enabled: false });
    });
    expect(await client.ready()).toBe(true);
    expect(client.evaluate("beta").reason).toBe("disabled");
  });

  test("that is missing makes the client not ready in time, and its flags not found", async () => {
    const { client, edge, clock, warnings } = await setUpBeta((given) => given.chunks.clear());
    const ready = client.ready();
    await requests(edge, 1);
    await eventually(() => client.status.current);
    clock.advance(5_000);
    expect(await ready).toBe(false);
    expect(client.evaluate("beta", {}, true)).toMatchObject({
      value: true,
      error: "FLAG_NOT_FOUND",
    });
    client.isEnabled("beta");
    expect(client.isEnabled("new-checkout")).toBe(true);
    expect(warnings().filter((line) => line.includes('"beta"'))).toEqual([
      'Halyard: The flag "beta" counts as not found: the list of "beta" is incomplete.',
    ]);
  });

  test("that does not arrive delays the client for at most 30 s", async () => {
    const { clock, edge, client } = startInProcess((given) => given.chunks.clear());
    const seen: boolean[] = [];
    void client.ready({ timeoutMs: 120_000 }).then((isReady) => seen.push(isReady));
    await runWithHeartbeats({ clock, edge }, 29);
    expect(seen).toEqual([]);
    await runWithHeartbeats({ clock, edge }, 2);
    expect(seen).toEqual([true]);
    expect(client.evaluate("beta").error).toBe("FLAG_NOT_FOUND");
    await client.close();
  });

  test("that changes is switched in one step, with an event that names the dependents", async () => {
    const { client, edge } = await setUpBeta((given) =>
      given.change("chain", { requires: [{ flag: "beta", is: "on" }] }),
    );
    await client.ready();
    const changes = changesOf(client);
    const held: Parameters<FakeEdge["handle"]>[] = [];
    edge.behave("list", (...given) => void held.push(given));
    publish(edge, after);
    await eventually(() => held.length === after.chunks.size);
    edge.behave("list", "normal");
    for (const given of held) {
      expect([isIn(client, "bob"), isIn(client, "eve")]).toEqual([true, false]);
      expect(changes).toEqual([]);
      edge.handle(...given);
    }
    await eventually(() => isIn(client, "eve"));
    expect(isIn(client, "bob")).toBe(false);
    expect(client.isEnabled("chain", { id: "eve" })).toBe(true);
    expect(changes).toEqual([["beta", "chain"]]);
  });

  test("loads at most four chunks at the same time", async () => {
    const entries = Array.from({ length: 1_000 }, (_, index) => `user-${index}`);
    const { client, edge } = await setUp({}, (given) => {
      publish(given, listOf(entries, { bits: 4 }));
      given.change("beta", beta);
      given.behave("list", "hang");
    });
    await requests(edge, 4);
    await eventually(() => client.status.current);
    expect(edge.of("list").length).toBe(4);
  });

  test("that no flag uses any more frees its requests for another list", async () => {
    const entries = Array.from({ length: 100 }, (_, index) => `user-${index}`);
    const { client, edge } = await setUpBeta((given) => {
      publish(given, listOf(entries, { bits: 2 }));
      given.behave("list", "hang");
    });
    await requests(edge, 4);
    edge.behave("list", "normal");
    edge.inOneStep(() => {
      edge.changeAudience("beta", undefined);
      for (const [sha256, bytes] of before.chunks) edge.chunks.set(sha256, bytes);
      edge.changeAudience("next", { match: [], list: before.list });
      edge.change("beta", { targeting_rules: [{ conditions: [{ audience: "next" }] }] });
    });
    await eventually(() => isIn(client, "bob"));
  });

  test("is not requested any more after the client is closed", async () => {
    const { client, edge, clock } = await setUpBeta((given) => given.behave("list", "hang"));
    await requests(edge, 1);
    await client.close();
    clock.advance(60_000);
    expect(clock.timers).toBe(0);
    expect(edge.of("list").length).toBe(1);
  });
});

describe("a chunk is requested again", () => {
  test.each<[string, Behavior, string]>([
    ["after 404", { status: 404 }, "list"],
    ["after 503", { status: 503, headers: { "retry-after": "1" } }, "list"],
    ["after a lost connection", "reset", "unreachable"],
    ["after a time-out", "hang", "unreachable"],
    ["if its bytes are others", { status: 200, body: "12345678" }, "list"],
    ["if it is too long", { status: 200, body: "x".repeat(600_000) }, "list"],
    ["after a redirect", { status: 302, headers: { location: "/elsewhere" } }, "list"],
  ])("%s", async (_, behavior, expected) => {
    const { client, edge, clock } = await setUpBeta((given) => given.behave("list", behavior));
    const errors: ClientEvents["error"][] = [];
    client.on("error", (error) => void errors.push(error));
    await requests(edge, 1);
    if (behavior === "hang") clock.advance(20_000);
    await eventually(() => {
      clock.advance(100);
      return errors.some(({ code }) => code === expected);
    });
    edge.behave("list", "normal");
    await eventually(() => {
      clock.advance(500);
      return isIn(client, "ada");
    });
    expect(await client.ready()).toBe(true);
  });

  /** Returns the times of requests within two minutes, from the first one on, if all of them are rejected. */
  async function timesOfRequests(list: typeof before, headers: Record<string, string>) {
    const clock = createFakeClock();
    const edge = createFakeEdge();
    publish(edge, list);
    const timesMs: number[] = [];
    edge.behave("list", (_request, reply) => {
      timesMs.push(clock.monotonicMs());
      reply.head(404, headers);
      reply.end();
    });
    const { fetch } = createNetwork(() => edge);
    const platform = { fetch, clock, random: () => 0.5 };
    const client = createClientOn(platform, { baseUrl: "http://edge.test", serverKey, logger });
    await clock.run(120_000);
    await client.close();
    return timesMs.map((time) => time - (timesMs[0] ?? 0));
  }

  test("later after each failure", async () => {
    // A delay of 50 ms, lengthened by a half, and of 1, 2, 4, 8, 16, 30 and 30 s, each lengthened by a quarter.
    expect(await timesOfRequests(before, {})).toEqual([
      ...[0, 75, 1_325, 3_825, 8_825, 18_825, 38_825, 76_325, 113_825],
    ]);
  });

  test("within 100 ms and without an error after its first 404, as of an edge that lacks it for a moment", async () => {
    const { clock, edge, client } = startInProcess();
    await clock.run(0);
    expect(isIn(client, "bob")).toBe(true);
    const errors: ClientEvents["error"][] = [];
    client.on("error", (error) => void errors.push(error));
    const next = listOf(["eve"]);
    publish(edge, next, { withChunks: false });
    await clock.run(5);
    expect(edge.of("list").length).toBe(2);
    for (const [sha256, bytes] of next.chunks) edge.chunks.set(sha256, bytes);
    await clock.run(95);
    expect([isIn(client, "bob"), isIn(client, "eve")]).toEqual([false, true]);
    expect(errors).toEqual([]);
    await client.close();
  });

  test("at the time that the service names, and so are the chunks that were not requested yet", async () => {
    const entries = Array.from({ length: 100 }, (_, index) => `user-${index}`);
    const timesMs = await timesOfRequests(listOf(entries, { bits: 3 }), { "retry-after": "40" });
    expect(timesMs.slice(0, 9)).toEqual([0, 0, 0, 0, 50_000, 50_000, 50_000, 50_000, 100_000]);
  });
});

describe("the previous list", () => {
  async function withMissingChunks(): Promise<Setup> {
    const setup = await setUpBeta();
    await setup.client.ready();
    publish(setup.edge, after, { withChunks: false });
    await requests(setup.edge, 1 + after.chunks.size);
    return setup;
  }

  test("is kept for at most 30 s", async () => {
    const { client, clock } = await withMissingChunks();
    const changes = changesOf(client);
    clock.advance(29_999);
    expect(isIn(client, "bob")).toBe(true);
    clock.advance(1);
    expect(client.evaluate("beta").error).toBe("FLAG_NOT_FOUND");
    expect(changes).toEqual([["beta"]]);
  });

  test("is kept no longer when another change arrives meanwhile", async () => {
    const { client, edge, clock } = await withMissingChunks();
    clock.advance(20_000);
    publish(edge, listOf(["mallory"]), { withChunks: false });
    edge.change("beta", { ...beta, rollout_percentage: 50 });
    edge.change("marker", {});
    await eventually(() => client.evaluate("marker").reason === "static");
    clock.advance(10_000);
    expect(client.evaluate("beta").error).toBe("FLAG_NOT_FOUND");
  });

  test("is replaced by each version that arrives, however often the list changes", async () => {
    const { clock, edge, client } = startInProcess();
    await clock.run(0);
    edge.behave("list", (request, reply) => {
      const chunk = edge.chunks.get(request.path.slice(-64)) as Uint8Array;
      clock.after(1_100, () => {
        reply.head(200, {});
        reply.write(chunk);
        reply.end();
      });
    });
    for (let second = 0; second < 90; second += 1) {
      publish(edge, listOf(["ada", `user-${second}`]));
      edge.heartbeat();
      await clock.run(1_000);
      expect(isIn(client, "ada")).toBe(true);
      expect(isIn(client, `user-${second - 4}`)).toBe(false);
    }
    await clock.run(3_000);
    expect(isIn(client, "user-89")).toBe(true);
    await client.close();
  });

  test("is replaced when the chunks arrive, also after the flag was not found", async () => {
    const { client, edge, clock } = await withMissingChunks();
    clock.advance(30_000);
    for (const [sha256, bytes] of after.chunks) edge.chunks.set(sha256, bytes);
    await eventually(() => {
      clock.advance(1_000);
      return isIn(client, "eve");
    });
    expect(isIn(client, "bob")).toBe(false);
  });

  test("is kept no longer, and not requested any more, when the key is rejected meanwhile", async () => {
    const { client, edge, clock } = await withMissingChunks();
    for (const route of ["stream", "poll"] as const) edge.behave(route, { status: 401 });
    edge.cutStreams();
    await eventually(() => {
      clock.advance(100);
      return client.status.connection === "stopped";
    });
    expect(isIn(client, "bob")).toBe(true);
    const sent = edge.of("list").length;
    clock.advance(30_000);
    expect(client.evaluate("beta").error).toBe("FLAG_NOT_FOUND");
    await client.close();
    expect(edge.of("list").length).toBe(sent);
  });

  test("does not make flags stale: the connection is current", async () => {
    const { client } = await withMissingChunks();
    expect(client.status).toMatchObject({ current: true, connection: "streaming" });
  });
});

describe("the cache file", () => {
  type Cached = { edge: FakeEdge; served: ServedEdge; cacheFile: string };

  /** Runs a client with a cache file until it is ready, and closes it. */
  async function cached(): Promise<Cached> {
    const cacheFile = await newCacheFile();
    const { client, edge, served } = await setUp({ cacheFile }, (given) => {
      publish(given, before);
      given.change("beta", beta);
    });
    await client.ready();
    await client.close();
    return { edge, served, cacheFile };
  }

  const restart = ({ served: { url: baseUrl }, cacheFile }: Cached) =>
    startClient(createFakeClock(), { baseUrl, cacheFile, logger });

  const folderOf = ({ cacheFile }: Cached) => `${cacheFile}.lists`;
  const firstChunkOf = (given: Cached) => join(folderOf(given), before.list.chunks[0] as string);

  test("contains the audiences, and has the chunks beside, for its owner only", async () => {
    const given = await cached();
    expect(await readFile(given.cacheFile, "utf8")).toContain('"audiences":{"beta":');
    expect(await readdir(folderOf(given))).toEqual(before.list.chunks);
    expect((await stat(firstChunkOf(given))).mode & 0o777).toBe(0o600);
    expect((await stat(folderOf(given))).mode & 0o777).toBe(0o700);
  });

  test("starts a client without the service", async () => {
    const given = await cached();
    await given.served.stop();
    const client = restart(given);
    expect([isIn(client, "bob"), isIn(client, "eve")]).toEqual([true, false]);
  });

  test("is read with the chunks, which are not requested again", async () => {
    const given = await cached();
    expect(await restart(given).ready()).toBe(true);
    expect(given.edge.of("list").length).toBe(1);
  });

  /** Makes all files in the folder old. */
  async function age(given: Cached): Promise<void> {
    for (const name of await readdir(folderOf(given)))
      await utimes(join(folderOf(given), name), 0, 0);
  }

  test("loses the old chunks that no list has any more, and the folder after the last", async () => {
    const given = await cached();
    await writeFile(`${firstChunkOf(given)}.1-0.tmp`, "interrupted");
    await age(given);
    publish(given.edge, after);
    let client = restart(given);
    await eventually(() => isIn(client, "eve"));
    await client.close();
    expect((await readdir(folderOf(given))).sort()).toEqual([...after.chunks.keys()].sort());
    await age(given);
    given.edge.change("beta", undefined);
    given.edge.changeAudience("beta", undefined);
    client = restart(given);
    await client.ready();
    await client.close();
    await expect(readdir(folderOf(given))).rejects.toThrow("ENOENT");
  });

  test("leaves young chunks to other processes that share it", async () => {
    const given = await cached();
    publish(given.edge, after);
    const client = restart(given);
    await eventually(() => isIn(client, "eve"));
    await client.close();
    const expected = [...before.chunks.keys(), ...after.chunks.keys()].sort();
    expect((await readdir(folderOf(given))).sort()).toEqual(expected);
  });

  test("marks its chunks as used, so that no other process removes them", async () => {
    const given = await cached();
    await age(given);
    given.edge.change("marker", {});
    const client = restart(given);
    await client.ready();
    await client.close();
    expect((await stat(firstChunkOf(given))).mtimeMs).toBeGreaterThan(0);
  });

  test.each<[string, (path: string) => Promise<void>]>([
    ["damaged", (path) => writeFile(path, "12345678")],
    ["missing", (path) => rm(path)],
  ])("has the other flags if a chunk is %s, and the client loads the chunk", async (_, change) => {
    const given = await cached();
    await change(firstChunkOf(given));
    const client = restart(given);
    expect(client.evaluate("beta").error).toBe("FLAG_NOT_FOUND");
    expect(client.isEnabled("new-checkout")).toBe(true);
    await client.ready();
    expect(isIn(client, "bob")).toBe(true);
    await client.close();
    expect([await readFile(firstChunkOf(given))]).toEqual([...before.chunks.values()]);
  });

  test("keeps the last complete state while a chunk is missing", async () => {
    const given = await cached();
    const complete = await readFile(given.cacheFile, "utf8");
    publish(given.edge, after, { withChunks: false });
    let client = restart(given);
    await requests(given.edge, 2);
    await client.close();
    expect(await readFile(given.cacheFile, "utf8")).toBe(complete);
    expect(await readdir(folderOf(given))).toEqual(before.list.chunks);
    for (const [sha256, bytes] of after.chunks) given.edge.chunks.set(sha256, bytes);
    client = restart(given);
    expect(isIn(client, "bob")).toBe(true);
    await eventually(() => isIn(client, "eve"));
    await client.close();
    expect(await readFile(given.cacheFile, "utf8")).toContain(given.edge.tag.slice(1, -1));
  });

  test("is written when the chunks arrive after the rules", async () => {
    const cacheFile = await newCacheFile();
    const { client, edge, clock } = await setUp({ cacheFile }, (given) => {
      publish(given, before, { withChunks: false });
      given.change("beta", beta);
    });
    await requests(edge, 1);
    for (const [sha256, bytes] of before.chunks) edge.chunks.set(sha256, bytes);
    await eventually(async () => {
      clock.advance(1_000);
      return (await readFile(cacheFile, "utf8").catch(() => "")).includes(edge.tag.slice(1, -1));
    });
    expect(await readdir(`${cacheFile}.lists`)).toEqual(before.list.chunks);
    expect(isIn(client, "bob")).toBe(true);
  });
});

const ignore = () => undefined;
const logger = { info: ignore, warn: ignore, error: ignore };

test("a bootstrap object with a list is completed by the service", async () => {
  const bootstrap = {
    ...{ format: 2, environment_id: "e" },
    flags: { beta: { enabled: true, rollout_percentage: 100, ...beta, version: 1 } },
    audiences: { beta: { match: [], list: before.list } },
  };
  const { client } = await setUp({ bootstrap }, (edge) => {
    for (const [sha256, bytes] of before.chunks) edge.chunks.set(sha256, bytes);
    edge.behave("stream", "hang");
  });
  expect(client.evaluate("beta").error).toBe("FLAG_NOT_FOUND");
  await eventually(() => isIn(client, "bob"));
  expect(client.status.source).toBe("bootstrap");
});

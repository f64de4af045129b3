import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maxChunkBytes } from "@halyard/contracts";
import { findNatsServer } from "@halyard/local-backends";
import {
  call,
  type EventStream,
  eventually,
  openEventStream,
  openSnapshotBucket,
  type RestartableNats,
  type ServiceProcess,
  type SnapshotBucket,
  startRestartableNats,
  startServiceProcess,
  testBackends,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedChunk, deletedFlag, flagEntry, id, listedAudience } from "../builders.ts";

/** Runs an edge as a separate process through failures of NATS and of the bucket. */
const key = apiKey();
let nats: RestartableNats;
let bucket: SnapshotBucket;
let directory: string;
const edges: ServiceProcess[] = [];

beforeAll(async () => {
  nats = await startRestartableNats(await natsServer());
  bucket = await openSnapshotBucket(nats.url);
});
afterAll(async () => {
  await bucket.close();
  await nats.stop();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "halyard-edge-"));
});
afterEach(async () => {
  for (const edge of edges.splice(0)) await edge.kill();
  await rm(directory, { recursive: true, force: true });
});

describe("given a complete snapshot in NATS", () => {
  it("starts from the snapshot alone", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true)]);
    const edge = await startEdge();
    await ready(edge);
    expect(await readiness(edge)).toMatchObject({ ready: true, source: "nats", stale_seconds: 0 });
    expect(await values(edge)).toEqual({ alpha: true });
  });

  it("applies changes and skips invalid entries", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true)]);
    const edge = await startEdge();
    await ready(edge);
    const stream = await openStream(edge);
    await bucket.spoil(flag("beta", true), { kind: "flag", version: "many" });
    await bucket.put(flag("alpha", false, 2));
    await eventually(() => lastFlags(stream)?.alpha === false);
    expect(await values(edge)).toEqual({ alpha: false });
    expect(await metrics(edge)).toContain('entries_rejected_total{service="sdk-edge"} 1');
    stream.close();
  });

  it("shuts down gracefully with open streams", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true)]);
    const edge = await startEdge();
    await ready(edge);
    const stream = await openStream(edge);
    expect(await edge.stop()).toBe(0);
    await stream.ended;
  });
});

describe("given a bucket that is deleted while an edge runs", () => {
  it("keeps serving its snapshot, and then follows the new bucket", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true), flag("beta", true)]);
    const edge = await startEdge();
    await ready(edge);
    const watching = watch(edge);
    await bucket.delete();
    await eventually(async () => (await readiness(edge)).stale_seconds >= 2);

    await bucket.rewriteWithoutEnd([flag("alpha", false, 1)]);
    await eventually(async () => (await readiness(edge)).stale_seconds >= 4);
    expect(await values(edge)).toEqual({ alpha: true, beta: true });

    await bucket.rewrite([key.entry, flag("alpha", false, 1)]);
    await eventually(async () => !("beta" in (await values(edge))));
    expect(await values(edge)).toEqual({ alpha: false });
    expect(await watching.stop()).toEqual([{ alpha: true, beta: true }, { alpha: false }]);
  });
});

describe("given a NATS server that is killed", () => {
  it("keeps serving, never older values, and follows again when NATS is available", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true)]);
    const edge = await startEdge();
    await ready(edge);
    const stream = await openStream(edge);
    await bucket.put(flag("alpha", false, 2));
    await eventually(() => lastFlags(stream)?.alpha === false);
    const watching = watch(edge);

    await nats.kill();
    await eventually(async () => (await readiness(edge)).stale_seconds >= 1);
    expect(await values(edge)).toEqual({ alpha: false });
    await nats.start();
    await eventually(async () => (await readiness(edge)).stale_seconds === 0);

    await eventually(() => bucket.put(flag("beta", true)).then(() => true));
    await eventually(() => lastFlags(stream)?.beta === true);
    expect(await watching.stop()).toEqual([{ alpha: false }, { alpha: false, beta: true }]);
    stream.close();
  });
});

describe("given a cache on disk", () => {
  it("starts from it while NATS is unavailable, reports that, and catches up later", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true)]);
    const first = await startEdge();
    await ready(first);
    expect(await first.stop()).toBe(0);
    await bucket.put(deletedFlag(2, flagId("alpha")), flag("beta", true));
    await nats.kill();

    const second = await startEdge();
    await ready(second);
    expect(await readiness(second)).toMatchObject({ ready: true, source: "cache" });
    expect(await values(second)).toEqual({ alpha: true });
    expect(await metrics(second)).toContain('snapshot_source{source="cache",service="sdk-edge"} 1');
    expect(await metrics(second)).toContain('halyard_nats_connected{service="sdk-edge"} 0');

    await nats.start();
    await eventually(async () => (await readiness(second)).source === "nats");
    expect(await metrics(second)).toContain('snapshot_source{source="cache",service="sdk-edge"} 0');
    expect(await metrics(second)).toContain(
      'halyard_follower_current{stream="KV_SNAPSHOT_2",service="sdk-edge"} 1',
    );
    expect(await values(second)).toEqual({ beta: true });
  });
});

describe("given an audience with a chunk of the largest size", () => {
  const users = Array.from({ length: maxChunkBytes / 8 }, (_, number) => `u${number}`);
  const { audience, chunks } = listedAudience(users);
  const changed = listedAudience(users.slice(1), { version: 2 });
  const used = flagEntry({
    ...{ flag_id: flagId("listed"), key: "listed", enabled: true },
    targeting_rules: [{ conditions: [{ audience: "beta" }] }],
  });

  async function isListed(edge: ServiceProcess, user: string): Promise<unknown> {
    const url = `${edge.url}/api/v1/sdk/flags?user_id=${user}`;
    return (await call(url, { key: key.text })).body.flags.listed;
  }

  it("finds its users with a snapshot from NATS, from the cache, and after a change that it missed", async () => {
    await bucket.rewrite([key.entry, used, ...chunks, audience]);
    const first = await startEdge();
    await ready(first);
    expect(await isListed(first, "u0")).toBe(true);
    expect(await first.stop()).toBe(0);
    await bucket.put(
      ...changed.chunks,
      changed.audience,
      ...chunks.map((one) => deletedChunk(one, 2)),
    );
    await nats.kill();

    const second = await startEdge();
    await ready(second);
    expect(await isListed(second, "u0")).toBe(true);
    await nats.start();
    await eventually(async () => (await isListed(second, "u0")) === false);
    expect(await isListed(second, "u1")).toBe(true);
  });
});

describe("given a cache on disk and NATS", () => {
  it("reads only the changes since the cache was written", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true), flag("beta", true)]);
    await stoppedEdge();
    // A full read would not find this flag, so the edge must keep it from the cache.
    await bucket.lose(flag("alpha", true));
    await bucket.put(deletedFlag(2, flagId("beta")), flag("gamma", true));
    const edge = await startEdge();
    await ready(edge);
    await eventually(() => readiness(edge), {
      until: ({ source, stale_seconds: stale }) => source === "nats" && stale === 0,
    });
    expect(await values(edge)).toEqual({ alpha: true, gamma: true });
    expect(await edge.stop()).toBe(0);
  });

  it("reads everything if the snapshot was rewritten", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true, 5), flag("beta", true)]);
    await stoppedEdge();
    await bucket.rewrite([key.entry, flag("alpha", false, 1)]);
    const edge = await startEdge();
    await ready(edge);
    await eventually(async () => (await readiness(edge)).source === "nats");
    expect(await values(edge)).toEqual({ alpha: false });
  });

  /** Starts and stops an edge, so that it writes its cache. */
  async function stoppedEdge(): Promise<void> {
    const edge = await startEdge();
    await ready(edge);
    expect(await edge.stop()).toBe(0);
  }
});

describe("given neither NATS nor a cache", () => {
  it("is alive but not ready, answers 503 with Retry-After, and stops on a signal", async () => {
    await bucket.rewrite([key.entry, flag("alpha", true)]);
    await nats.kill();
    const edge = await startEdge();
    expect((await call(`${edge.metricsUrl}/healthz`)).status).toBe(200);
    expect(await readiness(edge)).toMatchObject({ ready: false, source: "none" });
    expect((await call(`${edge.url}/readyz`)).status).toBe(503);
    const answered = await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text });
    expect(answered.status).toBe(503);
    expect(answered.headers.get("retry-after")).not.toBeNull();
    const patient = await startEdge();
    expect(await edge.stop()).toBe(0);

    await nats.start();
    await ready(patient);
    expect(await values(patient)).toEqual({ alpha: true });
  });
});

async function startEdge(): Promise<ServiceProcess> {
  const edge = await startServiceProcess("sdk-edge", {
    NATS_URL: nats.url,
    SNAPSHOT_CACHE_FILE: join(directory, "snapshot"),
  });
  edges.push(edge);
  return edge;
}

async function ready(edge: ServiceProcess): Promise<void> {
  await eventually(async () => (await readiness(edge)).ready);
}

async function readiness(edge: ServiceProcess) {
  const { body } = await call(`${edge.metricsUrl}/readyz`);
  return body as { ready: boolean; source: string; stale_seconds: number };
}

async function metrics(edge: ServiceProcess): Promise<string> {
  return (await fetch(`${edge.metricsUrl}/metrics`)).text();
}

async function values(edge: ServiceProcess): Promise<Record<string, boolean>> {
  const { status, body } = await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text });
  expect(status).toBe(200);
  return body.flags;
}

/** Polls continuously, and returns every distinct set of values in order. */
function watch(edge: ServiceProcess) {
  const seen: Record<string, boolean>[] = [];
  let stopped = false;
  const watching = (async () => {
    while (!stopped) {
      const now = await values(edge);
      if (JSON.stringify(now) !== JSON.stringify(seen.at(-1))) seen.push(now);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await watching;
      return seen;
    },
  };
}

function openStream(edge: ServiceProcess): Promise<EventStream> {
  return openEventStream(`${edge.url}/api/v1/sdk/stream`, { authorization: `Bearer ${key.text}` });
}

function lastFlags(stream: EventStream): Record<string, boolean> | undefined {
  const last = stream.events.findLast(({ event }) => event === "flags");
  return (last?.data as { flags: Record<string, boolean> } | undefined)?.flags;
}

function flagId(name: string): string {
  return id("flag", name.charCodeAt(0));
}

function flag(name: string, enabled: boolean, version = 1) {
  return flagEntry({ flag_id: flagId(name), key: name, enabled, version });
}

/** Returns the binary of a NATS server. These tests kill the server, so they cannot share one with other tests. */
async function natsServer(): Promise<string> {
  const { nats: backend } = testBackends();
  if (backend.kind === "embedded") return backend.binary;
  return findNatsServer({ cacheDir: join(import.meta.dirname, "../../../.cache") });
}

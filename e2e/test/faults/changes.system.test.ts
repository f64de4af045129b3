import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../../src/stories/chapter.ts";
import {
  awaitAnswers,
  deleteStream,
  forgetMessageIdsAtOnce,
} from "../../src/system/disturbances.ts";
import {
  awaitLeader,
  awaitReady,
  type Edge,
  type System,
  startSystem,
} from "../../src/system/system.ts";

/** Long enough to reveal retries whose interval grows too much. */
const outageMs = 1_500;
/** Time limit in addition to the duration of some hundreds of changes on this machine. */
const recoveryWithinMs = 5_000;

/**
 * Time limit in addition to the duration of some hundreds of changes on this machine: the lease takes three seconds,
 * and the next attempt at most half a second.
 */
const takeOverWithinMs = 6_000;

/** One failure of each kind. `e2e/chaos` has further ones. */
describe("given a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2, postgres: "own" });
  });
  afterAll(() => system?.close());

  const readinessOf = async (edge: Edge) => (await call(`${edge.process.metricsUrl}/readyz`)).body;

  it("accepts changes during an outage of NATS, and publishes each once", async () => {
    const chapter = await beginChapter(system, { name: "NATS restarted" });
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    await system.nats.kill();
    // While NATS is unavailable, every response is late, but it arrives.
    await awaitAnswers(changes, 8);
    await system.nats.start();
    await awaitAnswers(changes, 20);
    expect(await chapter.faults()).toEqual([]);
  });

  it("keeps management ready without NATS, and reports the outage", async () => {
    const [management] = system.managements;
    const readiness = () => call(`${management?.metricsUrl}/readyz`);
    expect(await readiness()).toMatchObject({ status: 200, body: { nats: "connected" } });
    await system.nats.kill();
    await eventually(async () => (await readiness()).body.nats === "away");
    expect((await readiness()).status).toBe(200);
    await system.nats.start();
    await eventually(async () => (await readiness()).body.nats === "connected");
  });

  it("resumes soon after a restart of PostgreSQL, and keeps every acknowledged change", async () => {
    const chapter = await beginChapter(system, { name: "PostgreSQL restarted" });
    const changes = chapter.change();
    const begunMs = performance.now();
    await awaitAnswers(changes, 40);
    const ordinaryMs = performance.now() - begunMs;
    await system.postgres?.kill();
    await delay(outageMs);
    await system.postgres?.start();
    const backMs = performance.now();
    await awaitAnswers(changes, 20);
    expect(performance.now() - backMs).toBeLessThan(recoveryWithinMs + 5 * ordinaryMs);
    expect(await chapter.faults()).toEqual([]);
  });

  it("starts an edge from its disk cache without NATS, which catches up afterwards", async () => {
    const chapter = await beginChapter(system, { name: "From disk" });
    const edge = system.edges[0] as Edge;
    const flagIds = chapter.ladder.map(({ id }) => id);
    await eventually(
      () => {
        const cached = readFileSync(edge.cacheFile, "utf8");
        return flagIds.every((id) => cached.includes(id));
      },
      { because: "the cache contains this chapter's flags" },
    );
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    await edge.process.kill();
    await system.nats.kill();
    chapter.watcher.forgive(edge);
    await edge.start({ awaitReady: false });
    await awaitReady(edge);
    const shown = await call(`${edge.url}/api/v1/sdk/flags`, { key: chapter.tenant.clientKey });
    expect(shown.status).toBe(200);
    expect(await readinessOf(edge)).toMatchObject({ ready: true, source: "cache" });
    await awaitAnswers(changes, 8);
    await system.nats.start();
    await awaitAnswers(changes, 20);
    expect(await chapter.faults()).toEqual([]);
    expect(await readinessOf(edge)).toMatchObject({ ready: true, source: "nats" });
  });

  it("resumes within the lease after SIGKILL to the leader of the relay", async () => {
    const chapter = await beginChapter(system, { name: "Killed" });
    await forgetMessageIdsAtOnce(system.nats.url);
    const changes = chapter.change();
    const begunMs = performance.now();
    await awaitAnswers(changes, 60);
    const ordinaryMs = performance.now() - begunMs;
    const leader = await awaitLeader(system.managements);
    const killedMs = performance.now();
    await leader.kill();
    system.managements.splice(system.managements.indexOf(leader), 1);
    await awaitLeader(system.managements);
    expect(performance.now() - killedMs).toBeLessThan(takeOverWithinMs + 5 * ordinaryMs);
    await awaitAnswers(changes, 60);
    expect(await chapter.faults()).toEqual([]);
    await system.startManagement();
  });

  it("restores the deleted snapshot and the deleted log of events", async () => {
    const chapter = await beginChapter(system, { name: "Both" });
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    await deleteStream(system.nats.url, flagEventsStream.name);
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    expect(await chapter.faults()).toEqual([]);
  });
});

import { statSync } from "node:fs";
import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../../src/stories/chapter.ts";
import { awaitAnswers } from "../../src/system/disturbances.ts";
import { awaitReady, type Edge, type System, startSystem } from "../../src/system/system.ts";

describe("given an edge that is killed under a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 2 });
  });
  afterAll(() => system?.close());

  const readiness = async (edge: Edge) => (await call(`${edge.process.metricsUrl}/readyz`)).body;

  it("comes back with everything, and with nothing older", async () => {
    const chapter = await beginChapter(system, { name: "Killed" });
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    const edge = system.edges[0] as Edge;
    await edge.process.kill();
    await awaitAnswers(changes, 40);
    await edge.start();
    await awaitAnswers(changes, 40);
    expect(await chapter.faults()).toEqual([]);
  });

  it("serves what its disk holds while NATS is away, says so, and then catches up", async () => {
    const chapter = await beginChapter(system, { name: "From disk" });
    const edge = system.edges[0] as Edge;
    const startedAt = Date.now();
    await eventually(() => statSync(edge.cacheFile).mtimeMs > startedAt, {
      because: "the cache holds this chapter's flags",
    });
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    await edge.process.kill();
    await system.nats.kill();
    chapter.watcher.forgive(edge);
    await edge.start({ awaitReady: false });
    await awaitReady(edge);
    const shown = await call(`${edge.url}/api/v1/sdk/flags`, { key: chapter.tenant.clientKey });
    expect(shown.status).toBe(200);
    expect(await readiness(edge)).toMatchObject({ ready: true, source: "cache" });
    await awaitAnswers(changes, 8);
    await system.nats.start();
    await awaitAnswers(changes, 20);
    expect(await chapter.faults()).toEqual([]);
    expect(await readiness(edge)).toMatchObject({ ready: true, source: "nats" });
  });
});

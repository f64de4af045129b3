import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readAll } from "../src/checks/agreement.ts";
import { beginChapter } from "../src/stories/chapter.ts";
import { awaitAnswers, deleteStream, lockTable } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";

/** Time until edges detect a new epoch. They check it every second, and immediately when their consumer ends. */
const untilNoticedMs = 2_000;

describe("given JetStream streams that are deleted while edges run", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2 });
  });
  afterAll(() => system?.close());

  it("rebuilds the snapshot, and no edge serves less in the meantime", async () => {
    const chapter = await beginChapter(system, { name: "Bucket" });
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    await awaitAnswers(changes, 60);
    expect(await chapter.faults()).toEqual([]);
  });

  it("serves nothing from a partial snapshot", async () => {
    const chapter = await beginChapter(system, { name: "Half written" });
    const { watcher } = chapter;
    const unlock = await lockTable(system.sql, "flags", "access exclusive");
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    // The new snapshot contains keys, and no flags.
    await eventually(async () => {
      const entries = await readAll(system.nats.url, snapshotBucket.streamName);
      return entries.some(({ subject }) => subject.includes(".key."));
    });
    await delay(untilNoticedMs);
    const seen = system.edges.map(watcher.answers);
    await eventually(() =>
      system.edges.every((edge, index) => watcher.answers(edge) > (seen[index] ?? 0) + 20),
    );
    await unlock();
    await awaitAnswers(chapter.change(), 30);
    expect(await chapter.faults()).toEqual([]);
  });

  it("refills the log with all events, each once", async () => {
    const chapter = await beginChapter(system, { name: "Log" });
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    await deleteStream(system.nats.url, flagEventsStream.name);
    await awaitAnswers(changes, 60);
    expect(await chapter.faults()).toEqual([]);
  });
});

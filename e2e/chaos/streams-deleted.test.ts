import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readAll } from "../src/checks/agreement.ts";
import { beginChapter } from "../src/stories/chapter.ts";
import { awaitAnswers, deleteStream, lockTable } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";

/** An edge looks at the epoch every second, and at once when its reading ends. */
const untilNoticedMs = 2_000;

describe("given JetStream's streams that are deleted under running edges", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2 });
  });
  afterAll(() => system?.close());

  it("writes the snapshot anew, and no edge shows less meanwhile", async () => {
    const chapter = await beginChapter(system, { name: "Bucket" });
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    await awaitAnswers(changes, 60);
    expect(await chapter.faults()).toEqual([]);
  });

  it("shows nothing of a snapshot that is half written", async () => {
    const chapter = await beginChapter(system, { name: "Half written" });
    const { watcher } = chapter;
    const unlock = await lockTable(system.sql, "flags", "access exclusive");
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    // Keys are there again, and no flag.
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

  it("refills the log of events with all that it held, each once", async () => {
    const chapter = await beginChapter(system, { name: "Log" });
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    await deleteStream(system.nats.url, flagEventsStream.name);
    await awaitAnswers(changes, 60);
    expect(await chapter.faults()).toEqual([]);
  });
});

import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../../src/chapter.ts";
import { awaitAnswers, deleteStream } from "../../src/disturbances.ts";
import { type System, startSystem } from "../../src/system.ts";

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

  it("refills the log of events with all that it held, each once", async () => {
    const chapter = await beginChapter(system, { name: "Log" });
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    await deleteStream(system.nats.url, flagEventsStream.name);
    await awaitAnswers(changes, 60);
    expect(await chapter.faults()).toEqual([]);
  });

  it("does both at once, while nothing is being changed", async () => {
    const chapter = await beginChapter(system, { name: "Both" });
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    await deleteStream(system.nats.url, flagEventsStream.name);
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    expect(await chapter.faults()).toEqual([]);
  });
});

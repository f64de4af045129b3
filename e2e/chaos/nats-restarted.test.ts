import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../src/stories/chapter.ts";
import { awaitAnswers } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";

describe("given NATS that is suspended or killed during a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2 });
  });
  afterAll(() => system?.close());

  it("loses nothing when the broker is suspended and continues", async () => {
    const chapter = await beginChapter(system, { name: "NATS stopped" });
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    system.nats.signal("SIGSTOP");
    await awaitAnswers(changes, 8);
    system.nats.signal("SIGCONT");
    await awaitAnswers(changes, 40);
    expect(await chapter.faults()).toEqual([]);
  });

  it("publishes again what a broker acknowledged and then lost", async () => {
    const chapter = await beginChapter(system, { name: "Power lost" });
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    const forgetWhatFollows = rememberStreams(system.nats);
    await awaitAnswers(changes, 60);
    await system.nats.kill();
    forgetWhatFollows();
    await system.nats.start();
    await awaitAnswers(changes, 40);
    expect(await chapter.faults()).toEqual([]);
  });
});

/** Simulates a power failure before acknowledged data are on disk: restores the files as they are now. */
function rememberStreams(nats: System["nats"]): () => void {
  const streams = join(nats.storeDir, "jetstream");
  const remembered = join(nats.storeDir, "remembered");
  nats.signal("SIGSTOP");
  cpSync(streams, remembered, { recursive: true });
  nats.signal("SIGCONT");
  return () => {
    rmSync(streams, { recursive: true });
    renameSync(remembered, streams);
  };
}

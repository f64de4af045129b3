import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../../src/chapter.ts";
import { awaitAnswers } from "../../src/disturbances.ts";
import { type System, startSystem } from "../../src/system.ts";

describe("given NATS that is killed and started again under a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2 });
  });
  afterAll(() => system?.close());

  it("takes changes meanwhile, and tells of all of them once", async () => {
    const chapter = await beginChapter(system, { name: "NATS restarted" });
    const changes = chapter.change();
    for (let round = 0; round < 2; round += 1) {
      await awaitAnswers(changes, 40);
      await system.nats.kill();
      // While NATS is away every change is answered late, but it is answered.
      await awaitAnswers(changes, 8);
      await system.nats.start();
    }
    await awaitAnswers(changes, 20);
    expect(await chapter.faults()).toEqual([]);
  });

  it("loses nothing to a broker that falls silent and goes on", async () => {
    const chapter = await beginChapter(system, { name: "NATS stopped" });
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    system.nats.signal("SIGSTOP");
    await awaitAnswers(changes, 8);
    system.nats.signal("SIGCONT");
    await awaitAnswers(changes, 40);
    expect(await chapter.faults()).toEqual([]);
  });
});

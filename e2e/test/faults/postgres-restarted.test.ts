import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../../src/stories/chapter.ts";
import { awaitAnswers } from "../../src/system/disturbances.ts";
import { type System, startSystem } from "../../src/system/system.ts";

/** Long enough that whoever tries again more and more rarely would be noticed afterwards. */
const outageMs = 1_500;
/** Beside what some hundreds of changes take, on the machine as it is. */
const recoveryWithinMs = 5_000;

describe("given PostgreSQL that is killed and started again under a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2, postgres: "own" });
  });
  afterAll(() => system?.close());

  it("keeps every change that was answered, tells of it once, and is soon at work again", async () => {
    const chapter = await beginChapter(system, { name: "PostgreSQL restarted" });
    const changes = chapter.change();
    for (let round = 0; round < 2; round += 1) {
      const begunMs = performance.now();
      await awaitAnswers(changes, 40);
      const ordinaryMs = performance.now() - begunMs;
      await system.postgres?.kill();
      await delay(outageMs);
      await system.postgres?.start();
      const backMs = performance.now();
      await awaitAnswers(changes, 20);
      expect(performance.now() - backMs).toBeLessThan(recoveryWithinMs + 5 * ordinaryMs);
    }
    expect(await chapter.faults()).toEqual([]);
  });
});

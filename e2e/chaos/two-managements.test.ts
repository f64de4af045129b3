import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitSettled } from "../src/checks/agreement.ts";
import { beginChapter, type Chapter } from "../src/stories/chapter.ts";
import { awaitLeader, type Management, type System, startSystem } from "../src/system/system.ts";
import { must } from "../src/system/tenancy.ts";

/** Half a second is what a write waits at most; an answer that took that long did not hear of it. */
const heardWithinMs = 400;

describe("given two managements of which one leads the relay", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 1 });
  });
  afterAll(() => system?.close());

  /** As long as the quickest quarter takes at most: a busy machine may hold up the others. */
  async function quickAnswerMs(chapter: Chapter, management: Management): Promise<number> {
    const took: number[] = [];
    for (const flag of chapter.ladder.slice(0, 20)) {
      const startedMs = performance.now();
      await must(`${management.url}/api/v1/flags/${flag.id}`, {
        method: "PATCH",
        key: chapter.tenant.serverKey,
        body: { name: `renamed at ${startedMs}` },
      });
      took.push(performance.now() - startedMs);
    }
    return took.sort((left, right) => left - right)[took.length / 4] as number;
  }

  it("answers as soon as the leader has published, whichever of the two was asked", async () => {
    const chapter = await beginChapter(system, { name: "Healthy", steps: 20 });
    const leader = await awaitLeader(system.managements);
    const follower = system.managements.find((each) => each !== leader) as Management;
    expect(await quickAnswerMs(chapter, leader)).toBeLessThan(heardWithinMs);
    expect(await quickAnswerMs(chapter, follower)).toBeLessThan(heardWithinMs);
    expect(await chapter.faults()).toEqual([]);
  });

  it("goes on as before when the leader is gone for ever and another one comes", async () => {
    const chapter = await beginChapter(system, { name: "Succession", steps: 20 });
    const leader = await awaitLeader(system.managements);
    await leader.kill();
    system.managements.splice(system.managements.indexOf(leader), 1);
    const successor = await awaitLeader(system.managements);
    const newcomer = await system.startManagement();
    expect(await quickAnswerMs(chapter, successor)).toBeLessThan(heardWithinMs);
    expect(await quickAnswerMs(chapter, newcomer)).toBeLessThan(heardWithinMs);
    await awaitSettled(system.sql);
    expect(await chapter.faults()).toEqual([]);
  });
});

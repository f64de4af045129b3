import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitSettled } from "../src/checks/agreement.ts";
import { beginChapter, type Chapter } from "../src/stories/chapter.ts";
import { awaitLeader, type Management, type System, startSystem } from "../src/system/system.ts";
import { must } from "../src/system/tenancy.ts";

/** Below the 500 ms for which a write waits at most. A slower response was not notified of the publication. */
const notifiedWithinMs = 400;

describe("given two managements, one of which leads the relay", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 1 });
  });
  afterAll(() => system?.close());

  /** Returns the first quartile of response times, because a busy machine may delay some requests. */
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

  it("responds as soon as the leader has published, whichever process received the request", async () => {
    const chapter = await beginChapter(system, { name: "Healthy", steps: 20 });
    const leader = await awaitLeader(system.managements);
    const follower = system.managements.find((each) => each !== leader) as Management;
    expect(await quickAnswerMs(chapter, leader)).toBeLessThan(notifiedWithinMs);
    expect(await quickAnswerMs(chapter, follower)).toBeLessThan(notifiedWithinMs);
    expect(await chapter.faults()).toEqual([]);
  });

  it("continues as before when the leader is lost and another process takes over", async () => {
    const chapter = await beginChapter(system, { name: "Succession", steps: 20 });
    const leader = await awaitLeader(system.managements);
    await leader.kill();
    system.managements.splice(system.managements.indexOf(leader), 1);
    const successor = await awaitLeader(system.managements);
    const newcomer = await system.startManagement();
    expect(await quickAnswerMs(chapter, successor)).toBeLessThan(notifiedWithinMs);
    expect(await quickAnswerMs(chapter, newcomer)).toBeLessThan(notifiedWithinMs);
    await awaitSettled(system.sql);
    expect(await chapter.faults()).toEqual([]);
  });
});

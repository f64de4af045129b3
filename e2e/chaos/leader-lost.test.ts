import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../src/stories/chapter.ts";
import { awaitAnswers, forgetMessageIdsAtOnce } from "../src/system/disturbances.ts";
import { awaitLeader, type Management, type System, startSystem } from "../src/system/system.ts";

describe("given two managements during a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, edges: 2 });
  });
  afterAll(() => system?.close());

  async function leaderLeaves(): Promise<{ leader: Management; other: Management }> {
    const leader = await awaitLeader(system.managements);
    const other = system.managements.find((each) => each !== leader) as Management;
    // From here on, changes are sent to the other process.
    system.managements.splice(0, 2, other);
    return { leader, other };
  }

  it("has no effect of late writes by a former leader that was suspended", async () => {
    const chapter = await beginChapter(system, { name: "Stopped" });
    await forgetMessageIdsAtOnce(system.nats.url);
    const changes = chapter.change();
    await awaitAnswers(changes, 30);
    const { leader, other } = await leaderLeaves();
    await awaitAnswers(changes, 20);
    leader.gate.shut();
    await eventually(() => leader.gate.waitingBytes() > 2_000, {
      because: "the leader's last batch is held at the gate",
    });
    leader.signal("SIGSTOP");
    await awaitLeader([other]);
    await awaitAnswers(changes, 60);
    leader.gate.open();
    leader.signal("SIGCONT");
    await awaitAnswers(changes, 60);
    await eventually(() => leader.log().includes("no longer leading the relay"));
    expect(await chapter.faults()).toEqual([]);
    system.managements.push(leader);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginChapter } from "../src/stories/chapter.ts";
import { awaitAnswers } from "../src/system/disturbances.ts";
import { type Edge, type System, startSystem } from "../src/system/system.ts";

describe("given an edge that is killed during a stream of changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 2 });
  });
  afterAll(() => system?.close());

  it("serves all changes after its restart, and nothing older", async () => {
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
});

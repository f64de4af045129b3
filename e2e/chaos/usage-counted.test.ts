import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitCounted, counted, faultsOfUsage, unanswered } from "../src/checks/usage-agreement.ts";
import { beginUsageStory } from "../src/stories/usage-story.ts";
import { killOne, startReadyMetering } from "../src/system/replicas.ts";
import { type Edge, type System, startSystem } from "../src/system/system.ts";

/** Time before the kill of an edge whose requests it may lose. */
const lastMs = 1_000;
/** Minimum number of certain requests. It is much larger than the possible loss. */
const leastCertain = 500;

describe("given two edges and two meterings", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      meterings: 2,
      edges: 2,
      postgres: "own",
      settings: () => ({
        "sdk-edge": { STREAM_TOKEN_SECRET: "a secret that all edges here share" },
      }),
    });
  });
  afterAll(() => system?.close());

  it("counts every request, evaluation and stream once, whichever component fails in the meantime", async () => {
    const story = await beginUsageStory(system, { name: "To the request" });
    const traffic = story.ask();
    await traffic.goesOn();
    await killOne(system.meterings);
    await traffic.goesOn();
    await startReadyMetering(system);
    await system.nats.kill();
    await traffic.goesOn();
    await system.nats.start();
    await traffic.goesOn();
    await system.postgres?.kill();
    await traffic.goesOn();
    await system.postgres?.start();
    const [edge] = system.edges as [Edge];
    expect(await edge.process.stop()).toBe(0);
    await traffic.goesOn();
    await edge.start();
    await traffic.goesOn();
    await traffic.stop();
    // While the edge starts, it listens before it has loaded its data, and returns 503.
    const whileItStarts = new RegExp(`^${edge.name}: .*: 503,`);
    expect(traffic.complaints.filter((complaint) => !whileItStarts.test(complaint))).toEqual([]);
    const { tenant, before } = story;
    expect(await faultsOfUsage(system, tenant, [...before, ...traffic.sent])).toEqual([]);
  });

  it("counts a message once if a metering counted it and died before it acknowledged it", async () => {
    const story = await beginUsageStory(system, { name: "Counted and not said" });
    const traffic = story.ask();
    await traffic.goesOn();
    for (const { gate } of system.meterings) gate.shutBefore("+ACK");
    await eventually(() => system.meterings.every(({ gate }) => gate.holds("+ACK")), {
      because: "both have counted and not acknowledged",
    });
    await Promise.all([killOne(system.meterings), killOne(system.meterings)]);
    await startReadyMetering(system);
    await traffic.goesOn();
    await traffic.stop();
    const { tenant, before } = story;
    expect(await faultsOfUsage(system, tenant, [...before, ...traffic.sent])).toEqual([]);
  });

  it("loses no more than the last second of a killed edge", async () => {
    const story = await beginUsageStory(system, { name: "Killed" });
    const traffic = story.ask();
    await traffic.goesOn(1_000);
    const [edge] = system.edges as [Edge];
    await edge.process.kill();
    const killedMs = performance.now();
    await traffic.goesOn();
    await edge.start();
    await traffic.goesOn();
    await traffic.stop();

    const sent = [...story.before, ...traffic.sent];
    const admitted = counted(sent);
    const certain = admitted.filter(
      ({ endedMs }) => endedMs < killedMs - lastMs || endedMs > killedMs,
    );
    const used = await awaitCounted(system, story.tenant, { atLeast: certain.length });
    expect(certain.length).toBeGreaterThan(leastCertain);
    expect(used).toBeGreaterThanOrEqual(certain.length);
    expect(used).toBeLessThanOrEqual(admitted.length + unanswered(sent).length);
  });
});

import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitCounted, counted, faultsOfUsage, unanswered } from "../src/checks/usage-agreement.ts";
import { beginUsageStory } from "../src/stories/usage-story.ts";
import { killOne, startReadyMetering } from "../src/system/replicas.ts";
import { type Edge, type System, startSystem } from "../src/system/system.ts";

/** What an edge that is killed may take with it: what was asked of it within its last second. */
const lastMs = 1_000;
/** Much more than what may be lost, so that a loss would show. */
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

  it("counts every request, evaluation and stream once, whatever goes away meanwhile", async () => {
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
    // It listens a moment before it knows what there is, and says so.
    const whileItStarts = new RegExp(`^${edge.name}: .*: 503,`);
    expect(traffic.complaints.filter((complaint) => !whileItStarts.test(complaint))).toEqual([]);
    const { tenant, before } = story;
    expect(await faultsOfUsage(system, tenant, [...before, ...traffic.sent])).toEqual([]);
  });

  it("counts a message once that was counted by a metering which died before it could say so", async () => {
    const story = await beginUsageStory(system, { name: "Counted and not said" });
    const traffic = story.ask();
    await traffic.goesOn();
    for (const { gate } of system.meterings) gate.shutBefore("+ACK");
    await eventually(() => system.meterings.every(({ gate }) => gate.holds("+ACK")), {
      because: "both have counted and could not say so",
    });
    await Promise.all([killOne(system.meterings), killOne(system.meterings)]);
    await startReadyMetering(system);
    await traffic.goesOn();
    await traffic.stop();
    const { tenant, before } = story;
    expect(await faultsOfUsage(system, tenant, [...before, ...traffic.sent])).toEqual([]);
  });

  it("loses of an edge that is killed no more than its last second", async () => {
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

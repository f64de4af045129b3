import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginUsageStory } from "../src/stories/usage-story.ts";
import { type Edge, type System, startSystem } from "../src/system/system.ts";
import { plansText } from "../src/system/tenancy.ts";
import { followStreams, type TenantStreams } from "../src/traffic/tenant-streams.ts";

/**
 * Time within which the slots become free. The guarantee is thirty seconds, which `slots.test.ts` of the edge tests in
 * simulated time, with edges that are killed and suspended. This limit allows for a busy machine.
 */
const freeWithinMs = 60_000;

/** Both edges are lost at the same time, because the test mostly waits. */
describe("given an edge that is killed, and one that is suspended and resumes", () => {
  let system: System;
  let killed: Edge;
  let stopped: Edge;
  let living: Edge[];
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      edges: 4,
      settings: () => ({
        management: { PLANS: plansText({ four: { sse_connections: 4 } }) },
        "sdk-edge": { STREAM_TOKEN_SECRET: "a secret that all edges here share" },
      }),
    });
    [killed, stopped, ...living] = system.edges as [Edge, Edge, ...Edge[]];
  });
  afterAll(() => system?.close());

  /** Creates a tenant with four streams, three of them at the edge that will be lost. */
  async function given(name: string, lost: Edge): Promise<TenantStreams> {
    const { tenant } = await beginUsageStory(system, { name, plan: "four" });
    const streams = await followStreams(system, tenant);
    for (const edge of [lost, lost, lost, living[0] as Edge])
      await eventually(async () => (await streams.open(edge)).status === 200);
    return streams;
  }

  const atLiving = ({ opened }: TenantStreams) =>
    [...opened].filter(({ edge }) => living.includes(edge)).length;

  /** Opens streams at the living edges until they have accepted all four. */
  async function takeAll(streams: TenantStreams): Promise<void> {
    let turn = 0;
    await eventually(
      async () => {
        turn += 1;
        await streams.open(living[turn % living.length] as Edge);
        return atLiving(streams) >= 4;
      },
      { withinMs: freeWithinMs, because: "the slots of a lost edge are free" },
    );
  }

  it("frees their slots, and closes no stream of the edge that resumes", async () => {
    const [ofKilled, ofStopped] = [await given("Killed", killed), await given("Stopped", stopped)];
    await killed.process.kill();
    stopped.process.signal("SIGSTOP");
    await Promise.all([takeAll(ofKilled), takeAll(ofStopped)]);

    // Sent while the edge is suspended, so that it is the first request after that.
    const asked = ofStopped.open(stopped);
    stopped.process.signal("SIGCONT");
    expect((await asked).status).toBe(429);
    const resumed = [...ofStopped.opened].filter(({ edge }) => edge === stopped);
    expect(resumed).toHaveLength(3);
    for (const streams of [ofKilled, ofStopped]) {
      expect(atLiving(streams)).toBe(4);
      expect((await streams.open(living[0] as Edge)).status).toBe(429);
    }
    ofStopped.close(resumed);
    await eventually(async () => {
      const answers = await Promise.all(living.map((edge) => ofStopped.open(edge)));
      return answers.every(({ status }) => status === 429);
    });
    ofStopped.close(ofStopped.opened);
    await eventually(async () => (await ofStopped.open(stopped)).status === 200);
    await killed.start();
    ofKilled.close(ofKilled.opened);
    await eventually(async () => (await ofKilled.open(killed)).status === 200);
  });
});

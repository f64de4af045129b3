import { isThorough } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createWorld, type World } from "./simulation.ts";

/** Events in any order and at any time. */
const ordinary = [
  "take",
  "take",
  "take",
  "take",
  "take many",
  "close",
  "close",
  "close",
  "suspend for ten seconds",
  "kill",
] as const;
const limits = ["lower the limit", "raise the limit"] as const;
const outages = [
  "cut off",
  "reconnect",
  "freeze",
  "thaw",
  "thaw and take",
  "lose the disk of NATS",
] as const;
type What = (typeof ordinary | typeof limits | typeof outages)[number];

const manyStories = isThorough ? 100 : 25;
const edges = 4;
const limit = 6;
const shortSuspensionMs = 10_000;
/**
 * Suspensions in quick succession add up, and the limit holds only while edges renew their entries. An edge is suspended
 * only if it renewed its entry recently, so that it wakes in time to renew it again before the other edges end it.
 */
const renewedWithinMs = 5_000;

const stories = (whats: readonly What[]) =>
  fc.array(
    fc.record({
      // Mostly in quick succession, and sometimes so far apart that entries are ended.
      afterMs: fc.oneof(
        { weight: 6, arbitrary: fc.nat({ max: 30 }) },
        { weight: 2, arbitrary: fc.nat({ max: 1_000 }) },
        { weight: 2, arbitrary: fc.nat({ max: 6_000 }) },
        { weight: 1, arbitrary: fc.nat({ max: 30_000 }) },
      ),
      edge: fc.nat({ max: edges - 1 }),
      what: fc.constantFrom(...whats),
    }),
    { minLength: 20, maxLength: 120 },
  );
type Story = readonly { afterMs: number; edge: number; what: What }[];

describe("given edges in any order of events", () => {
  it.each([
    {
      name: "while messages are late and edges are killed or suspended for a short time",
      whats: [...ordinary, ...limits],
      isCalm: false,
    },
    {
      name: "while NATS loses its disk",
      whats: [...ordinary.slice(0, -2), "lose the disk of NATS" as const],
      isCalm: true,
    },
  ])(
    "never have more streams than the limit $name",
    async ({ whats, isCalm }) => {
      await forAll(whats, async (world, story) => {
        world.isCalm = isCalm;
        await play(world, story);
        expect(world.excesses).toEqual([]);
        await calmDown(world);
        expect(await fillUp(world)).toBe(limit);
        expect(world.excesses).toEqual([]);
      });
    },
    120_000,
  );

  it("are not suspended again before they renew their entries, because the others would end these", async () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const world = createWorld({ edges, limit, seed });
      await play(world, [
        { afterMs: 1_000, edge: 0, what: "take many" },
        { afterMs: 0, edge: 0, what: "suspend for ten seconds" },
        { afterMs: 0, edge: 0, what: "suspend for ten seconds" },
        { afterMs: 1_000, edge: 1, what: "take" },
      ]);
      expect(world.excesses).toEqual([]);
    }
  });

  it("count every stream after outages, and admit none above the limit", async () => {
    await forAll([...ordinary, ...outages], async (world, story) => {
      await play(world, story);
      expect(world.wrongClaims).toEqual([]);
      await calmDown(world);
      const open = world.openStreams();
      expect(world.countedStreams()).toBe(open);
      expect(await fillUp(world)).toBe(Math.max(open, limit));
      for (const edge of world.edges) while (edge.open > 0) edge.closeOne();
      await world.pass(2_000);
      expect(await fillUp(world)).toBe(limit);
      expect(world.countedStreams()).toBe(limit);
    });
  }, 120_000);
});

async function forAll(
  whats: readonly What[],
  check: (world: World, story: Story) => Promise<void>,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.integer(), stories(whats), (seed, story) =>
      check(createWorld({ edges, limit, seed }), story),
    ),
    { numRuns: manyStories, endOnFailure: true },
  );
}

async function play(world: World, story: Story): Promise<void> {
  await world.pass(8_000);
  for (const { afterMs, edge, what } of story) {
    await happen(what, edge, world);
    await world.pass(afterMs);
  }
}

async function happen(what: What, number: number, world: World): Promise<void> {
  const edge = world.edges[number];
  if (edge === undefined) return;
  if (what === "take") void edge.take();
  if (what === "take many") for (let times = 0; times < limit; times += 1) void edge.take();
  if (what === "close") edge.closeOne();
  if (what === "cut off") edge.cutOff();
  if (what === "reconnect") edge.reconnect();
  if (what === "freeze") edge.freeze();
  if (what === "thaw" && edge.isAlive) edge.thaw();
  if (what === "thaw and take" && edge.isAlive) {
    edge.thaw();
    void edge.take();
  }
  if (what === "suspend for ten seconds" && edge.isAlive && edge.renewedAgoMs() < renewedWithinMs) {
    edge.freeze();
    await world.pass(shortSuspensionMs);
    edge.thaw();
  }
  // The first edge always survives.
  if (what === "kill" && number > 0) edge.kill();
  if (what === "lower the limit") world.changeLimit(Math.floor(limit / 2));
  if (what === "raise the limit") world.changeLimit(limit);
  if (what === "lose the disk of NATS") world.loseDisk();
}

/** Waits until late messages have arrived and entries of killed edges were ended. */
async function calmDown(world: World): Promise<void> {
  world.isCalm = true;
  world.changeLimit(limit);
  for (const edge of world.edges)
    if (edge.isAlive) {
      edge.thaw();
      edge.reconnect();
    }
  await world.pass(60_000);
}

/** Requests more streams than allowed on every edge that lives. Returns how many are open then. */
async function fillUp(world: World): Promise<number> {
  for (const edge of world.edges)
    for (let times = 0; times <= limit; times += 1) if (edge.isAlive) void edge.take();
  await world.pass(10_000);
  return world.openStreams();
}

import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createWorld, type World } from "./simulation.ts";

/** What may happen, in any order and at any time. */
type What = (typeof whats)[number];
const whats = [
  "take",
  "take",
  "take",
  "take",
  "take many",
  "close",
  "close",
  "close",
  "cut off",
  "reconnect",
  "freeze",
  "thaw",
  "thaw and take",
  "kill",
  "lower the limit",
  "raise the limit",
] as const;

const edges = 4;
const limit = 6;

const happening = fc.record({
  // Mostly in quick succession, and at times so far apart that leases end.
  afterMs: fc.oneof(
    { weight: 6, arbitrary: fc.nat({ max: 30 }) },
    { weight: 2, arbitrary: fc.nat({ max: 1_000 }) },
    { weight: 2, arbitrary: fc.nat({ max: 6_000 }) },
    { weight: 1, arbitrary: fc.nat({ max: 30_000 }) },
  ),
  edge: fc.nat({ max: edges - 1 }),
  what: fc.constantFrom(...whats),
});

describe("given edges that anything may happen to", () => {
  it("never admit more streams than the limit, and all of them when it is calm again", async () => {
    const story = fc.array(happening, { minLength: 20, maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(fc.integer(), story, async (seed, happenings) => {
        const world = createWorld({ edges, limit, seed });
        await world.pass(200);
        for (const { afterMs, edge, what } of happenings) {
          make(what, edge, world);
          await world.pass(afterMs);
        }
        expect(world.violations).toEqual([]);
        await calmDown(world);
        expect(await fillUp(world)).toBe(limit);
        expect(world.violations).toEqual([]);
      }),
      { numRuns: 100, endOnFailure: true },
    );
  }, 60_000);
});

function make(what: What, number: number, world: World): void {
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
  // The first one lives to tell.
  if (what === "kill" && number > 0) edge.kill();
  if (what === "lower the limit") world.changeLimit(Math.floor(limit / 2));
  if (what === "raise the limit") world.changeLimit(limit);
}

/** Long enough for what was on its way to arrive, and for lost leases to end. */
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

/** Asks for more than there are on every edge that lives; answers how many streams are open then. */
async function fillUp(world: World): Promise<number> {
  for (const edge of world.edges)
    for (let times = 0; times <= limit; times += 1) if (edge.isAlive) void edge.take();
  await world.pass(10_000);
  return world.openStreams();
}

import { edgeStreams } from "@halyard/contracts";
import { isThorough } from "@halyard/testing";
import { beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createWorld, organization, type SimulatedEdge, type World } from "./simulation.ts";

/** Tests in simulated time which streams edges admit, with the real code over a simulated NATS. */
const limit = 5;
let world: World;
let one: SimulatedEdge;
let other: SimulatedEdge;
let third: SimulatedEdge;

beforeEach(() => {
  world = createWorld(3, limit);
  [one, other, third] = world.edges as [SimulatedEdge, SimulatedEdge, SimulatedEdge];
});

function fill(edge: SimulatedEdge, times = limit): void {
  for (let taken = 0; taken < times; taken += 1) expect(edge.take()).toBe("opened");
}

/** Passes the time that a change takes to the other edges. */
const settle = () => world.pass(edgeStreams.coalescedMs + world.delayMs);

describe("given one edge", () => {
  it("never exceeds the limit, even if hundreds of requests arrive together", () => {
    const outcomes = Array.from({ length: 300 }, () => one.take());
    expect(outcomes.filter((outcome) => outcome === "opened")).toHaveLength(limit);
    one.closeOne();
    expect([one.take(), one.take()]).toEqual(["opened", "full"]);
  });

  it("applies a changed limit immediately, and closes no stream", () => {
    fill(one);
    world.limit = limit + 1;
    expect([one.take(), one.take()]).toEqual(["opened", "full"]);
    world.limit = 2;
    one.closeOne();
    expect([one.take(), one.open]).toEqual(["full", limit]);
    world.limit = null;
    expect([one.take(), one.open]).toEqual(["opened", limit + 1]);
  });
});

describe("given several edges", () => {
  it("admit against the sum of their counts", () => {
    fill(one, 3);
    settle();
    fill(other, 2);
    settle();
    expect(third.take()).toBe("full");
    one.closeOne();
    settle();
    expect([third.take(), third.take()]).toEqual(["opened", "full"]);
  });

  it("exceed the limit by no more than what opens on them within the same moment", () => {
    for (const edge of world.edges) fill(edge);
    settle();
    expect(world.openStreams()).toBe(3 * limit);
    for (let closed = 0; closed < limit; closed += 1) {
      one.closeOne();
      other.closeOne();
      settle();
      expect(third.take()).toBe("full");
    }
    third.closeOne();
    settle();
    expect(one.take()).toBe("opened");
  });

  it("report a first change immediately, and those of the next 50 ms together", () => {
    const sent = () => world.sent.filter(({ state }) => state === "changed").length;
    world.pass(edgeStreams.coalescedMs);
    const before = sent();
    one.take();
    expect(sent()).toBe(before + 1);
    fill(one, limit - 1);
    expect(sent()).toBe(before + 1);
    world.pass(edgeStreams.coalescedMs);
    expect(sent()).toBe(before + 2);
    expect(world.sent.at(-1)).toMatchObject({ streams: { [organization]: limit } });
  });

  it("report thousands of organizations in parts below the maximum size", () => {
    world.limit = null;
    const organizations = edgeStreams.maxOrganizations + 1;
    for (let number = 0; number < organizations; number += 1)
      one.take(`01920000-0000-7000-8300-${String(number).padStart(12, "0")}`);
    other.take();
    world.pass(2 * edgeStreams.intervalMs);
    const parts = world.sent.flatMap((report) =>
      report.state === "all" && report.parts === 2 ? [report] : [],
    );
    expect(parts.slice(0, 2).map(({ part }) => part)).toEqual([1, 2]);
    const named = parts.slice(0, 2).map(({ streams }) => Object.keys(streams).length);
    expect(named).toEqual([edgeStreams.maxOrganizations, 1]);
    for (const report of world.sent)
      expect(JSON.stringify(report).length).toBeLessThan(edgeStreams.maxBytes);
  });
});

describe("given an edge that ends", () => {
  beforeEach(() => {
    fill(one);
    settle();
  });

  it("frees its slots immediately when it is stopped", () => {
    one.stop();
    settle();
    expect(other.take()).toBe("opened");
  });

  it("frees its slots 20 seconds after it was killed", () => {
    one.isAlive = false;
    world.pass(edgeStreams.silentAfterMs - edgeStreams.intervalMs);
    expect(other.take()).toBe("full");
    world.pass(3 * edgeStreams.intervalMs);
    expect(other.take()).toBe("opened");
  });

  it("keeps its slots through a suspension of 15 seconds", () => {
    one.isSuspended = true;
    world.pass(15_000);
    one.isSuspended = false;
    world.pass(10_000);
    expect([other.take(), one.take(), world.openStreams()]).toEqual(["full", "full", limit]);
  });

  it("keeps its streams through a longer suspension, and all edges admit nothing until there are fewer", () => {
    one.isSuspended = true;
    world.pass(60_000);
    fill(other);
    settle();
    one.isSuspended = false;
    world.pass(edgeStreams.intervalMs);
    expect([one.take(), world.openStreams()]).toEqual(["full", 2 * limit]);
    for (let closed = 0; closed < limit; closed += 1) other.closeOne();
    settle();
    expect(third.take()).toBe("full");
    one.closeOne();
    settle();
    expect([third.take(), world.openStreams()]).toEqual(["opened", limit]);
  });

  it("does not forget the others after its own suspension", () => {
    other.isSuspended = true;
    world.pass(60_000);
    other.isSuspended = false;
    world.pass(0);
    expect(other.take()).toBe("full");
  });
});

describe("given edges without NATS", () => {
  it("admit against the last counts, for any time", () => {
    fill(one, 2);
    settle();
    for (const edge of world.edges) edge.isConnected = false;
    world.pass(60_000);
    for (const edge of [other, third]) {
      fill(edge, limit - 2);
      expect(edge.take()).toBe("full");
    }
    one.closeOne();
    fill(one, limit - 1);
    expect(one.take()).toBe("full");
  });

  it("report their counts afterwards, and admit nothing until there are fewer", () => {
    for (const edge of world.edges) edge.isConnected = false;
    for (const edge of world.edges) fill(edge, 3);
    for (const edge of world.edges) edge.isConnected = true;
    world.pass(edgeStreams.intervalMs + world.delayMs);
    for (let closed = 9; closed > limit; closed -= 1) {
      expect(third.take()).toBe("full");
      world.edges.find(({ open }) => open > 0)?.closeOne();
      settle();
    }
    expect(third.take()).toBe("full");
    third.closeOne();
    settle();
    expect([one.take(), world.openStreams()]).toEqual(["opened", limit]);
  });
});

/** Events in any order and at any time. */
const ordinary = ["take", "take", "take", "take", "take many", "close", "close", "close"] as const;
const outages = ["disconnect", "connect", "suspend", "resume", "kill"] as const;
type What = (typeof ordinary | typeof outages)[number];

const manyStories = isThorough ? 1_000 : 100;
const count = 4;
const maxDelayMs = 40;

const stories = (whats: readonly What[]) =>
  fc.record({
    delayMs: fc.nat({ max: maxDelayMs }),
    events: fc.array(
      fc.record({
        afterMs: fc.oneof(
          { weight: 6, arbitrary: fc.nat({ max: 30 }) },
          { weight: 2, arbitrary: fc.nat({ max: 1_500 }) },
          { weight: 1, arbitrary: fc.nat({ max: 30_000 }) },
        ),
        edge: fc.nat({ max: count - 1 }),
        what: fc.constantFrom(...whats),
      }),
      { maxLength: 60 },
    ),
  });

/** Takes a stream. Without an outage, it exceeds the limit only by what the other edges could not know. */
function take(edge: SimulatedEdge, isBounded: boolean): void {
  if (!edge.isAlive || edge.isSuspended || edge.take() === "full" || !isBounded) return;
  const unknown = world.openedElsewhere(edge, edgeStreams.coalescedMs + world.delayMs);
  expect(world.openStreams()).toBeLessThanOrEqual(limit + unknown);
}

function happen(what: What, edge: SimulatedEdge, isBounded: boolean): void {
  if (what === "take") take(edge, isBounded);
  if (what === "take many") for (let times = 0; times < limit; times += 1) take(edge, isBounded);
  if (what === "close" && edge.isAlive && !edge.isSuspended) edge.closeOne();
  if (what === "disconnect") edge.isConnected = false;
  if (what === "connect") edge.isConnected = true;
  if (what === "suspend") edge.isSuspended = true;
  if (what === "resume") edge.isSuspended = false;
  // The first edge always survives.
  if (what === "kill" && edge !== world.edges[0]) edge.isAlive = false;
}

/** Plays any story, and then checks that all edges know the same number of streams and admit up to the limit. */
function playAll(whats: readonly What[], isBounded: boolean): void {
  fc.assert(
    fc.property(stories(whats), ({ delayMs, events }) => {
      world = createWorld(count, limit);
      world.delayMs = delayMs;
      for (const { afterMs, edge, what } of events) {
        happen(what, world.edges[edge] as SimulatedEdge, isBounded);
        world.pass(afterMs);
      }
      for (const edge of world.edges)
        Object.assign(edge, { isConnected: true, isSuspended: false });
      world.pass(edgeStreams.silentAfterMs + 3 * edgeStreams.intervalMs);
      const living = world.edges.filter(({ isAlive }) => isAlive);
      const open = world.openStreams();
      expect(living.map((edge) => edge.known())).toEqual(living.map(() => open));
      for (const edge of living)
        for (let times = 0; times <= limit; times += 1) {
          edge.take();
          settle();
        }
      expect(world.openStreams()).toBe(Math.max(open, limit));
    }),
    { numRuns: manyStories },
  );
}

describe("given any order of events", () => {
  it("edges exceed the limit by no more than what opened elsewhere in the last moment, and then agree", () => {
    playAll(ordinary, true);
  });

  it("edges agree after outages, and admit none above the limit", () => {
    playAll([...ordinary, ...outages], false);
  });
});

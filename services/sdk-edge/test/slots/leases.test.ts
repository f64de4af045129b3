import { beforeEach, describe, expect, it } from "@jest/globals";
import { createWorld, type SimulatedEdge, type World } from "./simulation.ts";

/** What becomes of slots when edges fall silent, to the second, in simulated time. */
const limit = 5;
let world: World;
let one: SimulatedEdge;
let other: SimulatedEdge;

beforeEach(async () => {
  world = createWorld({ edges: 2, limit, seed: 1 });
  world.isCalm = true;
  [one, other] = world.edges as [SimulatedEdge, SimulatedEdge];
  await world.pass(100);
});

describe("given an edge that holds all slots", () => {
  beforeEach(async () => {
    for (let times = 0; times < limit; times += 1) expect(await taken(one)).toBe("opened");
    expect(await taken(other)).toBe("full");
  });

  it("has a slot to give a second after one of its streams closed", async () => {
    one.closeOne();
    await world.pass(1_000);
    expect(await taken(other)).toBe("opened");
  });

  it("gives a slot to who comes back at once, and asks nobody", async () => {
    one.cutOff();
    one.closeOne();
    expect(await takenAtOnce(one)).toBe("opened");
  });

  it("leaves them to the others when it is killed, within 30 seconds, not before its lease has ended", async () => {
    one.kill();
    const seconds = await secondsUntil(async () => (await taken(other)) === "opened");
    expect(seconds).toBeGreaterThan(13);
    expect(seconds).toBeLessThan(30);
  });

  it("closes its streams when it is cut off, before the others take them", async () => {
    one.cutOff();
    expect(await secondsUntil(async () => one.open === 0)).toBeLessThan(16);
    expect(await taken(other)).toBe("full");
    const seconds = await secondsUntil(async () => (await taken(other)) === "opened");
    expect(seconds).toBeGreaterThan(3);
    expect(seconds).toBeLessThan(15);
  });

  it("closes its streams when it wakes and its lease has ended, before it admits anybody", async () => {
    one.freeze();
    await world.pass(60_000);
    for (let times = 0; times < limit; times += 1) expect(await taken(other)).toBe("opened");
    one.thaw();
    const outcome = one.take();
    expect(one.open).toBe(0);
    await world.pass(1_000);
    expect(await outcome).toBe("full");
  });

  it("keeps its streams when it wakes before that", async () => {
    one.freeze();
    await world.pass(10_000);
    one.thaw();
    await world.pass(10_000);
    expect(one.open).toBe(limit);
    expect(await taken(other)).toBe("full");
  });

  it("leaves them to the others at once when it stops", async () => {
    while (one.open > 0) one.closeOne();
    const stopped = one.slots.stop();
    await world.pass(100);
    await stopped;
    expect(await taken(other)).toBe("opened");
    expect(await taken(one)).toBe("unknown");
  });

  it("loses them when the bucket is deleted, and what is made anew is for all", async () => {
    world.dropBucket();
    await world.pass(20_000);
    expect(one.open).toBe(0);
    const outcomes = [];
    for (let times = 0; times <= limit; times += 1)
      outcomes.push(await taken(one), await taken(other));
    expect(outcomes.filter((outcome) => outcome === "opened")).toHaveLength(limit);
  });
});

describe("given edges that have lost NATS", () => {
  it("refuse who needs a slot that they do not hold, after some seconds at once", async () => {
    one.cutOff();
    expect(await taken(one)).toBe("unknown");
    await world.pass(10_000);
    expect(await takenAtOnce(one)).toBe("unknown");
  });

  it("admit again as soon as it is back, all of them together no more than the limit", async () => {
    expect(await taken(one)).toBe("opened");
    for (const edge of world.edges) edge.cutOff();
    await world.pass(60_000);
    expect(world.openStreams()).toBe(0);
    for (const edge of world.edges) edge.reconnect();
    await world.pass(1_500);
    const asked = Array.from({ length: limit }, () => [one.take(), other.take()]).flat();
    await world.pass(1_000);
    const outcomes = await Promise.all(asked);
    expect(outcomes.filter((outcome) => outcome === "opened")).toHaveLength(limit);
    expect(outcomes.filter((outcome) => outcome === "full")).toHaveLength(limit);
  });
});

describe("given a limit that changes", () => {
  it("closes nothing when it becomes lower than what is open, and admits nobody", async () => {
    for (let times = 0; times < limit; times += 1) await taken(one);
    world.changeLimit(2);
    expect(await taken(one)).toBe("full");
    expect(await taken(other)).toBe("full");
    expect(one.open).toBe(limit);
    for (let left = limit; left > 1; left -= 1) one.closeOne();
    await world.pass(1_000);
    expect(await taken(other)).toBe("opened");
    expect(await taken(other)).toBe("full");
  });

  it("gives away no slot that was free within the old one", async () => {
    for (let times = 0; times < limit; times += 1) await taken(times < 2 ? one : other);
    one.closeOne();
    world.changeLimit(4);
    expect(await taken(one)).toBe("full");
  });

  it("admits more at once when it is raised", async () => {
    for (let times = 0; times < limit; times += 1) await taken(one);
    expect(await taken(other)).toBe("full");
    world.changeLimit(limit + 1);
    expect(await taken(other)).toBe("opened");
  });

  it("still gives the slot that has just become free when it is raised", async () => {
    for (let times = 0; times < limit; times += 1) await taken(one);
    one.closeOne();
    world.changeLimit(limit + 1);
    expect(await taken(one)).toBe("opened");
    expect(await taken(other)).toBe("opened");
  });

  it("asks nobody when there is none", async () => {
    world.changeLimit(null);
    for (const edge of world.edges) edge.cutOff();
    for (let times = 0; times < 3 * limit; times += 1)
      expect(await takenAtOnce(one)).toBe("opened");
    await world.pass(20_000);
    expect(one.open).toBe(3 * limit);
  });

  it("knows of the streams that were opened while there was none", async () => {
    world.changeLimit(null);
    for (let times = 0; times < limit; times += 1) await taken(one);
    await world.pass(2_000);
    world.changeLimit(limit);
    expect(await taken(other)).toBe("full");
  });
});

async function taken(edge: SimulatedEdge) {
  const outcome = edge.take();
  let settled: Awaited<typeof outcome> | undefined;
  void outcome.then((known) => {
    settled = known;
  });
  for (let waited = 0; settled === undefined && waited < 10_000; waited += 20) await world.pass(20);
  return settled;
}

/** Without any time passing. */
async function takenAtOnce(edge: SimulatedEdge) {
  return Promise.race([edge.take(), world.pass(0).then(() => "still waiting" as const)]);
}

async function secondsUntil(isSo: () => Promise<boolean>): Promise<number> {
  for (let seconds = 0; seconds < 60; seconds += 1) {
    if (await isSo()) return seconds;
    await world.pass(1_000);
  }
  throw new Error("not within a minute");
}

import { beforeEach, describe, expect, it } from "@jest/globals";
import { slotTimes } from "../../src/slots/clock.ts";
import { createWorld, type SimulatedEdge, type World } from "./simulation.ts";

/** Tests in simulated time which streams are admitted while edges or NATS are unavailable. */
const limit = 5;
let world: World;
let one: SimulatedEdge;
let other: SimulatedEdge;
let third: SimulatedEdge;

beforeEach(async () => {
  world = createWorld({ edges: 3, limit, seed: 1 });
  world.isCalm = true;
  [one, other, third] = world.edges as [SimulatedEdge, SimulatedEdge, SimulatedEdge];
  // Wait until the bucket is no longer new.
  await world.pass(8_000);
});

describe("given an edge with as many streams as the limit allows", () => {
  beforeEach(async () => {
    await take(one, limit);
    expect(await taken(other)).toBe("full");
  });

  it("frees a slot within a second after a stream closed", async () => {
    one.closeOne();
    await world.pass(1_000);
    expect(await taken(other)).toBe("opened");
  });

  it("frees the slots of a killed edge within 30 seconds, once its entry is ended", async () => {
    one.kill();
    const seconds = await secondsUntil(async () => (await taken(other)) === "opened");
    expect(seconds).toBeGreaterThan(13);
    expect(seconds).toBeLessThan(30);
  });

  it("never counts a killed edge again, even on an edge that reads the bucket hours later", async () => {
    one.kill();
    await world.pass(2 * slotTimes.forgetAfterMs);
    third.cutOff();
    third.reconnect();
    await world.pass(2_000);
    expect(await taken(third)).toBe("opened");
  });

  it("frees the slots of a stopped edge immediately", async () => {
    while (one.open > 0) one.closeOne();
    const stopped = one.slots.stop();
    await world.pass(100);
    await stopped;
    expect(await taken(other)).toBe("opened");
  });

  it("keeps its streams through a suspension, and admits nothing until there are fewer than the limit", async () => {
    one.freeze();
    await world.pass(60_000);
    await take(other, limit);
    one.thaw();
    const asked = one.take();
    await world.pass(1_000);
    expect(await asked).toBe("full");
    expect(world.openStreams()).toBe(2 * limit);
    for (let closed = 0; closed < limit; closed += 1) other.closeOne();
    await world.pass(1_000);
    expect(await taken(third)).toBe("full");
    one.closeOne();
    await world.pass(1_000);
    expect(await taken(third)).toBe("opened");
    expect(world.openStreams()).toBe(limit);
  });

  it("does not admit a stream for an acknowledgement that it processes after a suspension", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      world = createWorld({ edges: 2, limit, seed });
      world.isCalm = true;
      await world.pass(8_000);
      const [sleeper, awake] = world.edges as [SimulatedEdge, SimulatedEdge];
      await take(sleeper, limit - 1);
      const asked = sleeper.take();
      sleeper.freeze();
      await world.pass(60_000);
      await take(awake, limit);
      sleeper.thaw();
      await world.pass(1_000);
      expect(await asked).not.toBe("opened");
    }
  });

  it("is still counted after a suspension of less than 15 seconds", async () => {
    one.freeze();
    await world.pass(10_000);
    one.thaw();
    await world.pass(10_000);
    expect(await taken(other)).toBe("full");
    expect(world.openStreams()).toBe(limit);
  });
});

describe("given a NATS server that lost its disk", () => {
  it("admits nothing for five seconds, while edges publish their counts", async () => {
    await take(one, 2);
    await take(other, limit - 2);
    world.loseDisk();
    await world.pass(1_500);
    expect(await takenAtOnce(third)).toBe("unknown");
    await world.pass(3_000);
    expect(await takenAtOnce(third)).toBe("unknown");
    await world.pass(3_000);
    expect(await taken(third)).toBe("full");
    expect(world.countedStreams()).toBe(limit);
    one.closeOne();
    await world.pass(1_000);
    expect(await taken(third)).toBe("opened");
    expect(world.excesses).toEqual([]);
  });

  it("counts an edge that reconnects within these five seconds", async () => {
    await take(one, 3);
    await take(other, 2);
    one.cutOff();
    world.loseDisk();
    const asked: Promise<string>[] = [];
    for (let waitedMs = 0; waitedMs < 3_000; waitedMs += 500) {
      asked.push(third.take());
      await world.pass(500);
    }
    one.reconnect();
    await world.pass(10_000);
    expect(await Promise.all(asked)).not.toContain("opened");
    expect(await taken(third)).toBe("full");
    expect(world.excesses).toEqual([]);
  });

  it("makes an edge wait if it joins in these five seconds, but not if it joins later", async () => {
    third.cutOff();
    await world.pass(30_000);
    world.loseDisk();
    await world.pass(1_000);
    third.reconnect();
    await world.pass(500);
    expect(await takenAtOnce(third)).toBe("unknown");
    third.cutOff();
    await world.pass(10_000);
    third.reconnect();
    await world.pass(500);
    expect(await taken(third)).toBe("opened");
  });

  it("admits nothing even if an edge stops in these five seconds", async () => {
    world.loseDisk();
    await world.pass(2_000);
    const stopped = other.slots.stop();
    await world.pass(1_000);
    await stopped;
    expect(await takenAtOnce(third)).toBe("unknown");
    await world.pass(5_000);
    expect(await taken(third)).toBe("opened");
  });
});

describe("given edges without NATS", () => {
  it("keep their streams and admit against the last counts", async () => {
    await take(one, 2);
    await take(other, 1);
    for (const edge of world.edges) edge.cutOff();
    await world.pass(60_000);
    expect(world.openStreams()).toBe(3);
    expect(await takenAtOnce(one)).toBe("opened");
    expect(await takenAtOnce(one)).toBe("opened");
    expect(await takenAtOnce(one)).toBe("full");
    one.closeOne();
    await world.pass(0);
    expect(await takenAtOnce(one)).toBe("opened");
    expect(one.open).toBe(4);
  });

  it("wait for a connection that is lost for less than a second", async () => {
    one.cutOff();
    const asked = one.take();
    await world.pass(500);
    expect(one.open).toBe(0);
    one.reconnect();
    await world.pass(100);
    expect(await asked).toBe("opened");
    expect(world.countedStreams()).toBe(1);
  });

  it("publish their counts afterwards, and admit nothing until there are fewer than the limit", async () => {
    for (const edge of world.edges) edge.cutOff();
    await world.pass(2_000);
    for (const edge of world.edges) await take(edge, 3);
    for (const edge of world.edges) edge.reconnect();
    await world.pass(1_500);
    expect(world.countedStreams()).toBe(9);
    for (let closed = 9; closed > limit; closed -= 1) {
      expect(await taken(third)).toBe("full");
      world.edges.find(({ open }) => open > 0)?.closeOne();
      await world.pass(1_000);
    }
    expect(await taken(third)).toBe("full");
    third.closeOne();
    await world.pass(1_000);
    expect(await taken(one)).toBe("opened");
    expect(world.openStreams()).toBe(limit);
  });
});

describe("given a limit that changes", () => {
  it("closes and admits nothing if it is lower than the number of open streams", async () => {
    await take(one, limit);
    world.changeLimit(2);
    expect(await taken(one)).toBe("full");
    expect(await taken(other)).toBe("full");
    expect(one.open).toBe(limit);
    for (let left = limit; left > 1; left -= 1) one.closeOne();
    await world.pass(1_000);
    expect(await taken(other)).toBe("opened");
    expect(await taken(other)).toBe("full");
  });

  it("admits more streams immediately when it is raised", async () => {
    await take(one, limit);
    expect(await taken(other)).toBe("full");
    world.changeLimit(limit + 1);
    expect(await taken(other)).toBe("opened");
  });

  it("admits all streams without NATS if the plan has no limit", async () => {
    world.changeLimit(null);
    for (const edge of world.edges) edge.cutOff();
    for (let times = 0; times < 3 * limit; times += 1)
      expect(await takenAtOnce(one)).toBe("opened");
    await world.pass(20_000);
    expect(one.open).toBe(3 * limit);
  });

  it("writes the count once per check if the plan has no limit", async () => {
    world.changeLimit(null);
    const { writes } = world;
    for (let passedMs = 0; passedMs < 4_000; passedMs += 2) {
      await takenAtOnce(one);
      await world.pass(2);
    }
    // One write for each of the 8 checks, plus the renewals of three edges every two seconds.
    expect(world.writes - writes).toBeLessThan(20);
  });

  it("counts the streams that opened without a limit", async () => {
    world.changeLimit(null);
    await take(one, limit);
    await world.pass(2_000);
    world.changeLimit(limit);
    expect(await taken(other)).toBe("full");
  });
});

async function take(edge: SimulatedEdge, times: number): Promise<void> {
  for (let taking = 0; taking < times; taking += 1) expect(await taken(edge)).toBe("opened");
}

async function taken(edge: SimulatedEdge) {
  const outcome = edge.take();
  let settled: Awaited<typeof outcome> | undefined;
  void outcome.then((known) => {
    settled = known;
  });
  for (let waited = 0; settled === undefined && waited < 10_000; waited += 20) await world.pass(20);
  return settled;
}

/** Returns the outcome, or "still waiting" if it is not decided immediately. */
async function takenAtOnce(edge: SimulatedEdge) {
  return Promise.race([edge.take(), world.pass(0).then(() => "still waiting" as const)]);
}

async function secondsUntil(isMet: () => Promise<boolean>): Promise<number> {
  for (let seconds = 0; seconds < 60; seconds += 1) {
    if (await isMet()) return seconds;
    await world.pass(1_000);
  }
  throw new Error("The condition was not met within a minute.");
}

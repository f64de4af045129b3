import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createSlots, type Slot, type SlotLimits, type Slots } from "../src/slots.ts";
import { createUpstreams, type Upstreams } from "../src/upstreams.ts";

const longEnoughMs = 600_000;

let upstreams: Upstreams;
let slots: Slots;

function givenSlots(names: string[], limits: Partial<SlotLimits>): void {
  upstreams = createUpstreams(names.map((name) => new URL(`http://${name}`)));
  const defaults = { perUpstream: 100, maxWaiting: 100, maxWaitMs: longEnoughMs };
  slots = createSlots(upstreams, { ...defaults, ...limits });
}

/** Takes a slot, which must be free. */
async function take(address = "a"): Promise<Slot> {
  return (await slots.request(address).slot) as Slot;
}

async function takeMany(count: number): Promise<Slot[]> {
  const taken: Slot[] = [];
  for (let index = 0; index < count; index++) taken.push(await take());
  return taken;
}

function hosts(taken: readonly Slot[]): string[] {
  return taken.map(({ upstream }) => upstream.origin.hostname);
}

/** Names of requests: `served` in the order of their slots, and `rejected`. */
let served: string[];
let rejected: string[];
beforeEach(() => {
  served = [];
  rejected = [];
});

function wait(name: string, address: string) {
  const request = slots.request(address);
  const settled = request.slot.then((slot) => {
    (slot === undefined ? rejected : served).push(name);
    return slot;
  });
  return { settled, cancel: request.cancel };
}

describe("given several processes", () => {
  it("distributes requests among them in turn", async () => {
    givenSlots(["one", "two", "three"], {});
    expect(hosts(await takeMany(6))).toEqual(["one", "two", "three", "one", "two", "three"]);
  });

  it("gives a stuck process no more requests than other processes have unanswered ones", async () => {
    givenSlots(["stuck", "one", "two"], {});
    await take();
    const next: string[] = [];
    for (let count = 0; count < 20; count++) {
      const slot = await take();
      next.push(...hosts([slot]));
      slot.release();
    }
    expect(next).not.toContain("stuck");
  });

  it("uses the process that was excluded first when all are unavailable", async () => {
    givenSlots(["restarted", "stopping"], {});
    const [restarted, stopping] = await takeMany(2);
    upstreams.leaveOut((restarted as Slot).upstream);
    upstreams.leaveOut((stopping as Slot).upstream);
    expect(hosts(await takeMany(3))).toEqual(["restarted", "restarted", "restarted"]);
  });

  it("excludes an unavailable process, unless all are unavailable", async () => {
    givenSlots(["one", "two"], {});
    const [one, two] = await takeMany(2);
    upstreams.leaveOut((one as Slot).upstream);
    expect(hosts(await takeMany(3))).toEqual(["two", "two", "two"]);
    upstreams.leaveOut((two as Slot).upstream);
    expect(hosts(await takeMany(2))).toEqual(["one", "one"]);
  });
});

describe("given a process that is excluded while requests wait", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it("gives them its slots as soon as it is available again", async () => {
    givenSlots(["one", "two"], { perUpstream: 1 });
    const [one] = [await take("a"), await take("b")];
    upstreams.leaveOut(one.upstream);
    one.release();
    const waiting = wait("c1", "c");
    await jest.advanceTimersByTimeAsync(999);
    expect(served).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(served).toEqual(["c1"]);
    expect(hosts([(await waiting.settled) as Slot])).toEqual(["one"]);
  });
});

describe("given no free slot", () => {
  it("serves addresses in turn, even if one of them has many requests", async () => {
    givenSlots(["one"], { perUpstream: 2 });
    const held = [await take("a"), await take("b")];
    const all = ["a1", "a2", "a3", "b1", "c1"].map((name) => wait(name, name[0] as string));
    for (const { settled } of [all[0], all[3], all[4], all[1]] as typeof all) {
      held.shift()?.release();
      held.push((await settled) as Slot);
    }
    expect(served).toEqual(["a1", "b1", "c1", "a2"]);
  });

  it("gives no address more than half of the slots", async () => {
    givenSlots(["one"], { perUpstream: 4 });
    const [first] = await takeMany(2);
    const third = wait("a3", "a");
    await take("b");
    expect(served).toEqual([]);
    first?.release();
    await third.settled;
    expect(served).toEqual(["a3"]);
  });

  it("rejects the newest request of the longest line when the queue is full", async () => {
    givenSlots(["one"], { perUpstream: 1, maxWaiting: 3 });
    const held = await take("a");
    const [, , newest] = ["a1", "a2", "a3"].map((name) => wait(name, "a"));
    const other = wait("b1", "b");
    await newest?.settled;
    held.release();
    expect(rejected).toEqual(["a3"]);
    other.cancel();
  });

  it("rejects a request that has waited for too long", async () => {
    givenSlots(["one"], { perUpstream: 1, maxWaitMs: 20 });
    await take("a");
    expect(await slots.request("b").slot).toBeUndefined();
  });

  it("skips cancelled requests", async () => {
    givenSlots(["one"], { perUpstream: 1 });
    const held = await take("a");
    const [first, second] = ["b1", "b2"].map((name) => wait(name, "b"));
    first?.cancel();
    held.release();
    held.release();
    await second?.settled;
    expect({ served, rejected }).toEqual({ served: ["b2"], rejected: ["b1"] });
  });
});

import { describe, expect, it } from "@jest/globals";
import { createKnownLeases, type KnownLeases } from "../../src/slots/known-leases.ts";

const times = { endAfterMs: 20_000, watchEveryMs: 1_000 };

describe("given a lease that was heard of", () => {
  it("is to be ended when it has been silent for longer than its edge can use it", () => {
    const known = hearing("edge", 7);
    expect(watchSeconds(known, 20)).toEqual([]);
    expect(watchSeconds(known, 1)).toEqual([{ leaseId: "edge", revision: 7 }]);
  });

  it("is silent from its newest renewal on", () => {
    const known = hearing("edge", 7);
    watchSeconds(known, 15);
    known.hear("edge", { revision: 8, isEnded: false });
    expect(watchSeconds(known, 20)).toEqual([]);
    expect(watchSeconds(known, 1)).toEqual([{ leaseId: "edge", revision: 8 }]);
  });

  it("was not watched while the watching edge slept", () => {
    const known = hearing("edge", 7);
    known.watch(60_000);
    expect(watchSeconds(known, 19)).toEqual([]);
  });

  it("is watched from the start when everything is heard of anew", () => {
    const known = hearing("edge", 7);
    watchSeconds(known, 20);
    known.begin();
    expect(known.isKnown("edge")).toBe(false);
    known.hear("edge", { revision: 7, isEnded: false });
    expect(watchSeconds(known, 20)).toEqual([]);
  });

  it("stays ended, whatever comes late", () => {
    const known = hearing("edge", 7);
    known.hear("edge", { revision: 9, isEnded: true });
    known.hear("edge", { revision: 8, isEnded: false });
    expect(known.isEnded("edge")).toBe(true);
    expect(watchSeconds(known, 30)).toEqual([]);
  });
});

describe("given many leases that have ended", () => {
  it("names the oldest of them, but for so many", () => {
    const known = createKnownLeases(times);
    for (const revision of [3, 1, 2]) known.hear(`ended-${revision}`, { revision, isEnded: true });
    known.hear("living", { revision: 0, isEnded: false });
    expect(known.longEnded(3)).toEqual([]);
    expect(known.longEnded(1)).toEqual(["ended-1", "ended-2"]);
  });
});

function hearing(leaseId: string, revision: number): KnownLeases {
  const known = createKnownLeases(times);
  known.hear(leaseId, { revision, isEnded: false });
  return known;
}

/** What the last of so many looks finds. */
function watchSeconds(known: KnownLeases, seconds: number) {
  let silent: ReturnType<KnownLeases["watch"]> = [];
  for (let second = 0; second < seconds; second += 1) silent = known.watch(1_000);
  return silent;
}

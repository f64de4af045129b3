import type { DirectoryKey } from "@halyard/api-keys";
import { defaultPlans, type SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { createSnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { createCounting } from "../../src/usage/counting.ts";
import { maxFlagsOfEnvironment, maxVariationsOfEnvironment } from "../../src/usage/flag-counts.ts";
import { id, organizationEntry, organizationWith, plansEntry } from "../builders.ts";

/** Tests counting with a snapshot and times that the test sets. */
const nine = Date.parse("2027-01-31T09:00:00.000Z");
const minutes = 60 * 1_000;
const hour = 60 * minutes;
const january = Date.parse("2027-01-31T23:59:59.000Z");

function given(
  entries: readonly SnapshotEntry[] = [],
  bounds?: Parameters<typeof createCounting>[0]["bounds"],
) {
  const holder = createSnapshotHolder({ now: () => nine, pace: { pauseMs: () => 0 } });
  holder.replace(id("epoch"), entries);
  const counting = createCounting({ holder, ...(bounds === undefined ? {} : { bounds }) });
  holder.onUpdate(({ changed }) => counting.usage.limitsChanged(changed.organizations));
  return {
    counting,
    usage: counting.usage,
    /** Replaces the snapshot. */
    become: (...now: SnapshotEntry[]) => holder.replace(id("epoch"), now),
    /** Replaces the snapshot by one of another epoch. */
    rebuild: (...now: SnapshotEntry[]) => holder.replace(id("epoch", 2), now),
    environments: () => counting.take()?.environments ?? [],
  };
}

function key(number = 1, environment = number): DirectoryKey {
  return {
    id: `key${number}`,
    kind: "client",
    organizationId: id("org"),
    projectId: id("project"),
    environmentId: id("env", environment),
    userId: id("user"),
    environmentOnly: false,
    scope: "write",
    expiresAtMs: undefined,
  };
}

describe("given requests of several keys", () => {
  it("adds them up by environment and endpoint", () => {
    const { usage, environments } = given();
    const [one, two, other] = [key(1, 1), key(2, 1), key(3, 2)];
    for (const asking of [one, two, one, other]) usage.count(asking, "flags", nine);
    usage.count(two, "ofrep_stream", nine);
    const counted = environments();
    expect(counted.map(({ environmentId, requests }) => [environmentId, requests])).toEqual([
      [id("env", 1), expect.objectContaining({ flags: 3, ofrep_stream: 1, evaluate: 0 })],
      [id("env", 2), expect.objectContaining({ flags: 1 })],
    ]);
  });

  it("records the last use of each key, even if its requests are rejected and not counted", () => {
    const { counting, usage } = given(organizationWith({ requests_per_month: 2 }));
    for (const at of [nine, nine + 5]) {
      usage.check(key(1), at);
      usage.count(key(1), "flags", at);
    }
    usage.check(key(2), nine + 6);
    usage.used(key(3), nine + 7);
    const used = [...(counting.take()?.keys ?? [])];
    expect(used.map(([keyId, { usedAtMs }]) => [keyId, usedAtMs])).toEqual([
      ["key1", nine + 5],
      ["key2", nine + 6],
      ["key3", nine + 7],
    ]);
    usage.check(key(2), nine + 7);
    expect(counting.take()).toMatchObject({ environments: [] });
  });

  it("returns each count once", () => {
    const { usage, environments } = given();
    usage.count(key(), "flags", nine);
    expect(environments()).toHaveLength(1);
    expect(environments()).toHaveLength(0);
    usage.count(key(), "flags", nine);
    expect(environments()[0]?.requests.flags).toBe(1);
  });
});

describe("given the end of an hour", () => {
  it("counts each request in the hour of its arrival", () => {
    const { usage, environments } = given();
    usage.count(key(), "flags", nine + hour - 1);
    usage.count(key(), "flags", nine + hour);
    usage.count(key(), "flags", nine + hour);
    expect(environments().map((one) => [one.hourBeganMs, one.requests.flags])).toEqual([
      [nine, 1],
      [nine + hour, 2],
    ]);
  });

  it("counts a response in the new hour if its request arrived in the previous hour", () => {
    const { usage, environments } = given();
    usage.count(key(), "flags", nine + hour);
    usage.answeredAll(key(), nine + hour - 1);
    expect(environments()).toMatchObject([{ hourBeganMs: nine + hour, bulkAnswers: 1 }]);
  });

  it("follows a clock that is set back, and returns each hour once", () => {
    const { usage, environments } = given();
    for (const at of [nine, nine + hour, nine, nine + hour]) usage.count(key(), "flags", at);
    expect(environments().map((one) => [one.hourBeganMs, one.requests.flags])).toEqual([
      [nine, 2],
      [nine + hour, 2],
    ]);
  });
});

describe("given responses with all flags", () => {
  it("counts them once for the environment, separately from responses with one flag", () => {
    const { usage, environments } = given();
    for (let time = 0; time < 5; time += 1) usage.answeredAll(key(), nine + time);
    for (let time = 0; time < 2; time += 1) usage.answeredOne(key(), id("flag"), nine + 5 + time);
    expect(environments()).toMatchObject([
      {
        bulkAnswers: 5,
        bulkAnsweredAtMs: nine + 4,
        flags: new Map([[id("flag"), { evaluations: 2, evaluatedAtMs: nine + 6 }]]),
      },
    ]);
  });
});

describe("given a limit of two requests a month", () => {
  const limited = organizationWith({ requests_per_month: 2 });
  const ask = ({ usage }: ReturnType<typeof given>, at: number) => {
    const problem = usage.check(key(), at);
    if (problem === undefined) usage.count(key(), "flags", at);
    return problem === undefined;
  };

  it("rejects from the third request on, and counts rejected requests separately", () => {
    const edge = given(limited);
    expect([1, 2, 3, 4].map(() => ask(edge, january))).toEqual([true, true, false, false]);
    expect(edge.environments()[0]?.requests.flags).toBe(2);
    expect(edge.counting.figures()).toMatchObject({ taken: 2, rejected: 2 });
  });

  it("admits requests again in the new month", () => {
    const edge = given(limited);
    expect([0, 1, 2].map(() => ask(edge, january))).toEqual([true, true, false]);
    expect([0, 1, 2].map(() => ask(edge, january + 1_000))).toEqual([true, true, false]);
  });

  it("applies a larger or smaller plan immediately", () => {
    const edge = given(limited);
    const plan = (version: number, requests_per_month: number | null) =>
      edge.become(plansEntry(version, { requests_per_month }));
    expect([0, 1, 2].map(() => ask(edge, january))).toEqual([true, true, false]);
    plan(2, 3);
    expect([0, 1].map(() => ask(edge, january))).toEqual([true, false]);
    plan(3, null);
    expect([0, 1].map(() => ask(edge, january))).toEqual([true, true]);
    plan(4, 2);
    expect(ask(edge, january)).toBe(false);
  });

  it("reports remaining requests that are at most a second old", () => {
    const { usage } = given(limited);
    const left = (at: number) => usage.member(key(), at)?.limit;
    expect(left(nine)).toMatch(/^"monthly";r=2;/);
    usage.count(key(), "flags", nine);
    expect(usage.member(key(), nine + 999)).toBe(usage.member(key(), nine));
    expect(left(nine + 1_000)).toMatch(/^"monthly";r=1;/);
    expect(left(nine - minutes)).toMatch(/^"monthly";r=1;/);
  });
});

describe("given an organization on a plan of two requests a month", () => {
  const plans = plansEntry(1, { requests_per_month: 2 });
  const limitOf = ({ usage }: ReturnType<typeof given>) => {
    const policy = usage.member(key(), nine)?.policy ?? "no limit";
    return Number(/q=(\d+)/.exec(policy)?.[1]);
  };

  it("has the limit, whether its entry or the plans arrive first", () => {
    expect(limitOf(given([plans, organizationEntry()]))).toBe(2);
    const edge = given([organizationEntry()]);
    expect(limitOf(edge)).toBeNaN();
    edge.become(plans);
    expect(limitOf(edge)).toBe(2);
  });

  it("keeps the limit while its new plan is unknown, also in a full read of another epoch", () => {
    const edge = given([plans, organizationEntry()]);
    edge.become(organizationEntry(2, "new"));
    expect(limitOf(edge)).toBe(2);
    edge.rebuild(plans, organizationEntry(2, "new"));
    expect(limitOf(edge)).toBe(2);
    const value = { ...plans.value, version: 2, limits: { new: defaultPlans.free } };
    edge.rebuild({ ...plans, value } as SnapshotEntry);
    expect(limitOf(edge)).toBe(defaultPlans.free?.requests_per_month);
  });
});

describe("given an unknown organization, or one without a limit", () => {
  it.each([
    ["unknown", []],
    ["unlimited", organizationWith({ requests_per_month: null })],
  ])("admits and counts everything, and reports no limit: %s", (_name, entries) => {
    const { usage, environments } = given(entries);
    for (let time = 0; time < 10; time += 1) {
      expect(usage.check(key(), nine)).toBeUndefined();
      usage.count(key(), "flags", nine);
    }
    expect(usage.member(key(), nine)).toBeUndefined();
    expect(environments()[0]?.requests.flags).toBe(10);
  });
});

describe("given more items than the bounds allow", () => {
  const bounds = { environments: 2, flags: 2, keys: 2 };

  it("keeps the existing items, and counts the dropped ones", () => {
    const { counting, usage } = given([], bounds);
    const keys = [1, 2, 3].map((number) => key(number));
    for (const number of [1, 2, 3, 1, 3]) {
      const asking = keys[number - 1] as DirectoryKey;
      usage.check(asking, nine);
      usage.count(asking, "flags", nine);
      usage.answeredOne(asking, id("flag", number), nine);
    }
    const taken = counting.take();
    expect(taken?.environments.map(({ requests }) => requests.flags)).toEqual([2, 1]);
    expect([...(taken?.keys.keys() ?? [])]).toEqual(["key1", "key2"]);
    expect(counting.figures().dropped).toEqual({ requests: 2, evaluations: 2, keys: 2 });
  });

  it("has room again after its counts were taken", () => {
    const { counting, usage } = given([], bounds);
    for (const number of [1, 2]) usage.count(key(number), "flags", nine);
    counting.take();
    for (const number of [3, 4]) usage.count(key(number), "flags", nine);
    expect(counting.take()?.environments).toHaveLength(2);
    expect(counting.figures().dropped.requests).toBe(0);
  });

  it("leaves room for other environments if one has reached its number of flags in an hour", () => {
    const { counting, usage, environments } = given();
    for (const at of [nine, nine + hour])
      for (let number = 0; number <= maxFlagsOfEnvironment; number += 1)
        usage.answeredOne(key(), id("flag", number), at);
    usage.answeredOne(key(2), id("flag", 1), nine + hour);
    expect(environments().map(({ flags }) => flags?.size)).toEqual([
      maxFlagsOfEnvironment,
      maxFlagsOfEnvironment,
      1,
    ]);
    expect(counting.figures().dropped.evaluations).toBe(2);
    usage.answeredOne(key(), id("flag", maxFlagsOfEnvironment), nine + hour);
    expect(environments()).toHaveLength(1);
  });

  it("counts an evaluation for its flag only if the environment has too many variations", () => {
    const { counting, usage, environments } = given();
    for (let number = 0; number <= maxVariationsOfEnvironment; number += 1)
      usage.answeredOne(key(), id("flag", number % 100), nine, `v${Math.floor(number / 100)}`);
    const [environment] = environments();
    const counts = [...(environment?.flags?.values() ?? [])];
    const evaluations = counts.reduce((sum, count) => sum + count.evaluations, 0);
    const variations = counts.reduce((sum, count) => sum + (count.variations?.size ?? 0), 0);
    expect(evaluations).toBe(maxVariationsOfEnvironment + 1);
    expect(variations).toBe(maxVariationsOfEnvironment);
    expect(counting.figures().dropped.evaluations).toBe(0);
  });

  it("counts variations like flags", () => {
    const { counting, usage, environments } = given([], bounds);
    for (const variation of ["blue", "red", "blue"])
      usage.answeredOne(key(), id("flag"), nine, variation);
    usage.answeredOne(key(), id("flag", 2), nine);
    const counted = { evaluations: 3, evaluatedAtMs: nine, variations: new Map([["blue", 2]]) };
    expect(environments()[0]?.flags).toEqual(new Map([[id("flag"), counted]]));
    expect(counting.figures().dropped.evaluations).toBe(1);
  });

  it("still limits an organization by its requests", () => {
    const { usage } = given(organizationWith({ requests_per_month: 3 }), bounds);
    for (const number of [1, 2, 3]) usage.count(key(number), "flags", nine);
    expect(usage.check(key(4), nine)?.rejected).toBe("RATE_001");
  });
});

import type { DirectoryKey } from "@halyard/api-keys";
import type { SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { createSnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { createCounting } from "../../src/usage/counting.ts";
import { mostYoungFlags } from "../../src/usage/young-flags.ts";
import { deletedFlag, id, organizationEntry } from "../builders.ts";
import { flagOf } from "./flags-by-age.ts";

/** Counting over a snapshot that the test feeds, with instants that the test names. */
const nine = Date.parse("2027-01-31T09:00:00.000Z");
const minutes = 60 * 1_000;
const hour = 60 * minutes;
const january = Date.parse("2027-01-31T23:59:59.000Z");

function given(
  entries: readonly SnapshotEntry[] = [],
  bounds?: Parameters<typeof createCounting>[0]["bounds"],
) {
  const holder = createSnapshotHolder({ now: () => nine, pace: { restMs: () => 0 } });
  holder.replace(id("epoch"), entries);
  const counting = createCounting({ holder, ...(bounds === undefined ? {} : { bounds }) });
  return {
    counting,
    usage: counting.usage,
    /** The snapshot says this from now on. */
    become: (...now: SnapshotEntry[]) => holder.replace(id("epoch"), now),
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
    expiresAtMs: undefined,
  };
}

function keyOf(organizationId: string): DirectoryKey {
  return { ...key(2, 2), organizationId };
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

  it("knows when each key was last used, also one that is only refused, and counts nothing of it", () => {
    const { counting, usage } = given([organizationEntry(1, { requests_per_month: 2 })]);
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

  it("hands everything over once", () => {
    const { usage, environments } = given();
    usage.count(key(), "flags", nine);
    expect(environments()).toHaveLength(1);
    expect(environments()).toHaveLength(0);
    usage.count(key(), "flags", nine);
    expect(environments()[0]?.requests.flags).toBe(1);
  });
});

describe("given the full hour", () => {
  it("counts each request in the hour in which it came", () => {
    const { usage, environments } = given();
    usage.count(key(), "flags", nine + hour - 1);
    usage.count(key(), "flags", nine + hour);
    usage.count(key(), "flags", nine + hour);
    expect(environments().map((one) => [one.hourBeganMs, one.requests.flags])).toEqual([
      [nine, 1],
      [nine + hour, 2],
    ]);
  });

  it("counts in the new hour what came before it and was answered late", () => {
    const { usage, environments } = given();
    usage.count(key(), "flags", nine + hour);
    usage.answeredAll(key(), nine + hour - 1);
    expect(environments()).toMatchObject([{ hourBeganMs: nine + hour, bulkAnswers: 1 }]);
  });

  it("goes back with a clock that is put back, and has each hour once", () => {
    const { usage, environments } = given();
    for (const at of [nine, nine + hour, nine, nine + hour]) usage.count(key(), "flags", at);
    expect(environments().map((one) => [one.hourBeganMs, one.requests.flags])).toEqual([
      [nine, 2],
      [nine + hour, 2],
    ]);
  });
});

describe("given answers about all flags", () => {
  const old = flagOf(nine - 1, 1);
  const young = flagOf(nine + 10 * minutes, 2);
  const younger = flagOf(nine + 20 * minutes, 3);
  const evaluations = (
    environment: { flags: ReadonlyMap<string, { evaluations: number }> | undefined } | undefined,
  ) =>
    Object.fromEntries(
      [...(environment?.flags ?? [])].map(([flagId, count]) => [flagId, count.evaluations]),
    );

  it("counts them once for the flags that are older than the hour", () => {
    const { usage, environments } = given([old.entry]);
    for (let time = 0; time < 5; time += 1) usage.answeredAll(key(), nine + time);
    const [counted] = environments();
    expect(counted).toMatchObject({ bulkAnswers: 5, bulkAnsweredAtMs: nine + 4 });
    expect(evaluations(counted)).toEqual({});
  });

  it("counts them one by one for the flags that are as young as the hour, from when they are there", () => {
    const { usage, environments, become } = given([old.entry, young.entry]);
    usage.answeredAll(key(), nine + 11 * minutes);
    become(old.entry, young.entry, younger.entry);
    usage.answeredAll(key(), nine + 21 * minutes);
    usage.answeredAll(key(), nine + 22 * minutes);
    const [counted] = environments();
    expect(counted?.bulkAnswers).toBe(3);
    expect(evaluations(counted)).toEqual({ [young.id]: 3, [younger.id]: 2 });
  });

  it("credits a flag that is deleted with those until then", () => {
    const { usage, environments, become } = given([young.entry]);
    usage.answeredAll(key(), nine + 11 * minutes);
    become(deletedFlag(2, young.id));
    usage.answeredAll(key(), nine + 12 * minutes);
    expect(evaluations(environments()[0])).toEqual({ [young.id]: 1 });
  });

  it("counts them one by one for the thousand young flags that were created first", () => {
    const born = Array.from({ length: mostYoungFlags + 3 }, (_, number) => flagOf(nine + number));
    const { usage, environments } = given(born.map(({ entry }) => entry).reverse());
    usage.answeredAll(key(), nine + 11 * minutes);
    usage.answeredAll(key(), nine + hour);
    const [then, now] = environments();
    const credited = [...(then?.flags?.keys() ?? [])];
    expect(credited).toEqual(born.slice(0, mostYoungFlags).map((flag) => flag.id));
    expect(now).toMatchObject({ bulkAnswers: 1, flags: undefined });
  });

  it("counts for a flag by itself no more once its hour is over", () => {
    const { usage, environments } = given([young.entry]);
    usage.answeredAll(key(), nine + 11 * minutes);
    usage.answeredAll(key(), nine + hour);
    expect(environments().map(evaluations)).toEqual([{ [young.id]: 1 }, {}]);
  });

  it("adds what a young flag was asked for by itself", () => {
    const { usage, environments } = given([young.entry]);
    usage.answeredOne(key(), young.id, nine + 11 * minutes);
    usage.answeredAll(key(), nine + 12 * minutes);
    expect(evaluations(environments()[0])).toEqual({ [young.id]: 2 });
  });

  it("counts none twice when it is taken in between", () => {
    const { usage, environments } = given([young.entry]);
    usage.answeredAll(key(), nine + 11 * minutes);
    expect(evaluations(environments()[0])).toEqual({ [young.id]: 1 });
    usage.answeredAll(key(), nine + 12 * minutes);
    expect(evaluations(environments()[0])).toEqual({ [young.id]: 1 });
  });
});

describe("given a limit of two requests a month", () => {
  const limited = organizationEntry(1, { requests_per_month: 2 });
  const ask = ({ usage }: ReturnType<typeof given>, at: number) => {
    const refusal = usage.check(key(), at);
    if (refusal === undefined) usage.count(key(), "flags", at);
    return refusal === undefined;
  };

  it("refuses from the third on, and counts what it refuses only as that", () => {
    const edge = given([limited]);
    expect([1, 2, 3, 4].map(() => ask(edge, january))).toEqual([true, true, false, false]);
    expect(edge.environments()[0]?.requests.flags).toBe(2);
    expect(edge.counting.figures()).toMatchObject({ taken: 2, refused: 2 });
  });

  it("opens with the new month by itself", () => {
    const edge = given([limited]);
    expect([0, 1, 2].map(() => ask(edge, january))).toEqual([true, true, false]);
    expect([0, 1, 2].map(() => ask(edge, january + 1_000))).toEqual([true, true, false]);
  });

  it("allows more, or less, as soon as the plan does", () => {
    const edge = given([limited]);
    const plan = (version: number, requests_per_month: number | null) =>
      edge.become(organizationEntry(version, { requests_per_month }));
    expect([0, 1, 2].map(() => ask(edge, january))).toEqual([true, true, false]);
    plan(2, 3);
    expect([0, 1].map(() => ask(edge, january))).toEqual([true, false]);
    plan(3, null);
    expect([0, 1].map(() => ask(edge, january))).toEqual([true, true]);
    plan(4, 2);
    expect(ask(edge, january)).toBe(false);
  });

  it("says what is left as it was a second ago at most", () => {
    const { usage } = given([limited]);
    const left = (at: number) => usage.headers(key(), at).at(-1);
    expect(left(nine)).toMatch(/^"monthly";r=2;/);
    usage.count(key(), "flags", nine);
    expect(usage.headers(key(), nine + 999)).toBe(usage.headers(key(), nine));
    expect(left(nine + 1_000)).toMatch(/^"monthly";r=1;/);
    expect(left(nine - minutes)).toMatch(/^"monthly";r=1;/);
  });
});

describe("given an organization that nobody has heard of, or without a limit", () => {
  it.each([
    ["unknown", []],
    ["unlimited", [organizationEntry(1, { requests_per_month: null })]],
  ])("admits and counts everything, and says nothing: %s", (_name, entries) => {
    const { usage, environments } = given(entries);
    for (let time = 0; time < 10; time += 1) {
      expect(usage.check(key(), nine)).toBeUndefined();
      usage.count(key(), "flags", nine);
    }
    expect(usage.headers(key(), nine)).toEqual([]);
    expect(environments()[0]?.requests.flags).toBe(10);
  });
});

describe("given more than there is room for", () => {
  const flags = { all: 2, ofOrganization: 2, ofEnvironment: 2 };
  const bounds = { environments: 2, flags, keys: 2 };

  it("keeps what it has, and counts what it drops", () => {
    const { counting, usage } = given([], bounds);
    const keys = [1, 2, 3].map((number) => key(number));
    for (const number of [1, 2, 3, 1, 3]) {
      const asking = keys[number - 1] as DirectoryKey;
      usage.count(asking, "flags", nine);
      usage.answeredOne(asking, id("flag", number), nine);
    }
    const taken = counting.take();
    expect(taken?.environments.map(({ requests }) => requests.flags)).toEqual([2, 1]);
    expect([...(taken?.keys.keys() ?? [])]).toEqual(["key1", "key2"]);
    expect(counting.figures().dropped).toEqual({ requests: 2, evaluations: 2, keys: 2 });
  });

  it("has room again for what comes after it was taken", () => {
    const { counting, usage } = given([], bounds);
    for (const number of [1, 2]) usage.count(key(number), "flags", nine);
    counting.take();
    for (const number of [3, 4]) usage.count(key(number), "flags", nine);
    expect(counting.take()?.environments).toHaveLength(2);
    expect(counting.figures().dropped.requests).toBe(0);
  });

  it.each([
    ["environment", { all: 9, ofOrganization: 9, ofEnvironment: 2 }, key(2, 2)],
    ["organization", { all: 9, ofOrganization: 2, ofEnvironment: 9 }, keyOf(id("org", 2))],
  ])("leaves room for flags of others when an %s has filled its part", (_name, flags, other) => {
    const { counting, usage, environments } = given([], { environments: 9, flags, keys: 9 });
    const ask = (asking: DirectoryKey, number: number, at: number) =>
      usage.answeredOne(asking, id("flag", number), at);
    // Each hour takes room of its own.
    for (const at of [nine, nine + hour]) for (const number of [1, 2]) ask(key(), number, at);
    for (const number of [1, 2]) ask(other, number, nine + hour);
    const counted = environments().map(({ environmentId, flags }) => [environmentId, flags?.size]);
    expect(counted).toEqual([
      [id("env", 1), 2],
      [other.environmentId, 2],
    ]);
    expect(counting.figures().dropped.evaluations).toBe(2);
    ask(key(), 1, nine + hour);
    expect(environments()).toHaveLength(1);
  });

  it("limits an organization by its requests all the same", () => {
    const { usage } = given([organizationEntry(1, { requests_per_month: 3 })], bounds);
    for (const number of [1, 2, 3]) usage.count(key(number), "flags", nine);
    expect(usage.check(key(4), nine)?.refused).toBe("RATE_001");
  });
});

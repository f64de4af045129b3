import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  burstMs,
  type CostlyEvaluations,
  createCostlyEvaluations,
  evaluationSliceMs,
  maxRunning,
  maxWaiting,
  maxWaitMs,
} from "../../src/admission/costly-evaluations.ts";
import { maxSharing, shareMs } from "../../src/admission/evaluation-queue.ts";

/** Duration of a step on the test's clock: half a slice. */
const stepMs = evaluationSliceMs / 2;
let clockMs: number;
let costlyEvaluations: CostlyEvaluations;
let steps: string[];
let finished: string[];
let rejected: string[];

beforeEach(() => {
  clockMs = 0;
  costlyEvaluations = createCostlyEvaluations({ monotonicMs: () => clockMs });
  steps = [];
  finished = [];
  rejected = [];
});
afterEach(() => costlyEvaluations.stop());

function* work(name: string, count: number, msEach = stepMs): Generator<undefined, void> {
  for (let step = 1; step <= count; step += 1) {
    clockMs += msEach;
    steps.push(name);
    yield;
  }
  finished.push(name);
}

/** Queues an evaluation with `count` steps, and returns the function that drops it. */
function add(organization: string, name: string, count: number): () => void {
  const reject = () => void rejected.push(name);
  return costlyEvaluations.add(organization, { steps: work(name, count), reject });
}

function addMany(organization: string, howMany: number, count: number): string[] {
  const names = Array.from({ length: howMany }, (_, number) => `${organization}${number}`);
  for (const name of names) add(organization, name, count);
  return names;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

async function untilIdle(): Promise<void> {
  for (let before = -1; before !== clockMs; ) {
    before = clockMs;
    await turns(2 * maxSharing);
  }
}

describe("given an evaluation that takes longer than a slice", () => {
  it("runs one slice of the evaluation in each turn of the event loop", async () => {
    add("a", "long", 5);
    expect(steps).toHaveLength(0);
    await turns(1);
    expect(steps).toHaveLength(2);
    await turns(1);
    expect(steps).toHaveLength(4);
    await turns(1);
    expect(finished).toEqual(["long"]);
  });

  it("stops it when its client disconnects", async () => {
    const drop = add("a", "left", 9);
    await turns(1);
    drop();
    await turns(3);
    expect(steps).toEqual(["left", "left"]);
  });

  it("runs short ones of the same organization beside it", async () => {
    add("a", "long", 100);
    addMany("a", 5, 1);
    await turns(6);
    expect(finished).toEqual(["a0", "a1", "a2", "a3", "a4"]);
    expect(steps).toContain("long");
  });
});

describe("given many evaluations of one organization", () => {
  it("runs a few at a time, and finishes them in the order of their arrival", async () => {
    const names = addMany("a", 60, 40);
    await turns(130);
    expect(new Set(steps).size).toBeLessThanOrEqual(finished.length + maxRunning);
    expect(finished).toEqual(names.slice(0, finished.length));
    expect(finished.length).toBeGreaterThan(2);
    await untilIdle();
    expect([...finished, ...rejected].sort()).toEqual([...names].sort());
  });

  it("rejects those that have not started in time, and starts later ones", async () => {
    const stepsEach = 400 / stepMs;
    const names = addMany("a", 60, stepsEach);
    await untilIdle();
    expect(finished).toEqual(names.slice(0, finished.length));
    expect(rejected).toEqual(names.slice(finished.length));
    const started = maxWaitMs / 400 + maxRunning;
    expect(finished.length).toBeGreaterThanOrEqual(started - maxRunning);
    expect(finished.length).toBeLessThanOrEqual(started);
    expect(costlyEvaluations.rejected).toBe(rejected.length);
    expect(costlyEvaluations.waiting).toBe(0);
    add("a", "later", 1);
    await untilIdle();
    expect(finished.at(-1)).toBe("later");
  });

  it("removes a waiting evaluation whose client disconnects", async () => {
    addMany("a", maxRunning, 50);
    await turns(1);
    const drop = add("a", "left", 1);
    expect(costlyEvaluations.waiting).toBe(1);
    drop();
    expect(costlyEvaluations.waiting).toBe(0);
    await untilIdle();
    expect(finished).toEqual(["a0", "a1"]);
    expect(rejected).toEqual([]);
  });

  it("finishes any number that arrive together if they are quick", async () => {
    const msEach = 0.2;
    const count = burstMs / msEach - 1;
    for (let number = 0; number < count; number += 1)
      costlyEvaluations.add("a", {
        steps: work("quick", 1, msEach),
        reject: () => rejected.push("quick"),
      });
    await untilIdle();
    expect(finished).toHaveLength(count);
    expect(rejected).toEqual([]);
  });

  it("rejects the excess when too many have waited for longer than a burst", async () => {
    const names = addMany("a", maxWaiting + maxRunning + 3, 1_000);
    await turns(burstMs / evaluationSliceMs - 1);
    expect(rejected).toEqual([]);
    await turns(1);
    expect(rejected).toEqual(names.slice(-3));
    expect(costlyEvaluations.waiting).toBe(maxWaiting);
  });
});

describe("given several organizations", () => {
  it("divides the time equally, regardless of the number of evaluations of each", async () => {
    addMany("busy", 60, 100);
    add("other", "one", 100);
    await turns(104);
    expect(finished).toContain("one");
    const ofOther = steps.filter((name) => name === "one").length;
    expect(steps.slice(0, steps.lastIndexOf("one")).length).toBeLessThanOrEqual(2 * ofOther + 2);
  });

  it("rejects the newest evaluations of the longest queue when too many wait", async () => {
    const names = addMany("busy", maxWaiting + maxRunning, 1_000);
    addMany("other", maxRunning + 7, 1_000);
    await turns(burstMs / evaluationSliceMs + 1);
    expect(rejected).toEqual(names.slice(-7));
    expect(costlyEvaluations.waiting).toBe(maxWaiting);
  });

  it("keeps the oldest evaluations of each when all queues have the same length", async () => {
    const [first, second] = ["a", "b"].map((organization) =>
      addMany(organization, maxWaiting, 1_000),
    );
    await turns(burstMs / evaluationSliceMs + 1);
    const kept = maxWaiting / 2 + maxRunning;
    expect(rejected.sort()).toEqual(
      [...(first ?? []).slice(kept), ...(second ?? []).slice(kept)].sort(),
    );
  });

  it("runs a few organizations at a time, so that not all of them finish last", async () => {
    const organizations = Array.from({ length: 10 }, (_, number) => `o${number}`);
    for (const organization of organizations) add(organization, organization, 51);
    await turns(maxSharing * 26);
    expect(finished).toEqual(organizations.slice(0, maxSharing));
    expect(new Set(steps).size).toBe(maxSharing);
  });

  it("makes an organization wait no longer than the turns before it", async () => {
    for (let number = 0; number < maxSharing; number += 1) add(`long${number}`, "long", 2_000);
    await turns(1);
    add("late", "late", 1);
    const turnSlices = shareMs / evaluationSliceMs;
    await turns(maxSharing * turnSlices + maxSharing);
    expect(finished).toEqual(["late"]);
    await untilIdle();
    expect(finished).toEqual(["late", "long", "long", "long"]);
  });

  it("starts a waiting organization immediately if the current turns are over", async () => {
    for (let number = 0; number < maxSharing; number += 1) add(`long${number}`, "long", 2_000);
    await turns((maxSharing * shareMs) / evaluationSliceMs + maxSharing);
    add("late", "late", 1);
    await turns(maxSharing + 1);
    expect(finished).toEqual(["late"]);
  });
});

describe("given an edge that stops", () => {
  it("runs nothing more", async () => {
    add("a", "long", 9);
    costlyEvaluations.stop();
    await turns(2);
    expect(steps).toEqual([]);
  });
});

import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { createFairScheduler, type Steps, sendSliceMs } from "../../src/answers/fair-scheduler.ts";

/** Creates a scheduler whose work takes `workMs` for each item, on the test's clock. */
function given({ workMs }: { workMs: number }) {
  const processed: string[] = [];
  let clockMs = 0;
  const scheduler = createFairScheduler<string>({
    // biome-ignore lint/correctness/useYield: the work has a single step.
    *work(one) {
      processed.push(one);
      clockMs += workMs;
    },
    monotonicMs: () => clockMs,
  });
  return { scheduler, processed };
}

describe("given queued items", () => {
  it("processes as many immediately as fit into a slice, and the rest in later turns", async () => {
    const { scheduler, processed } = given({ workMs: sendSliceMs / 2 });
    scheduler.add("o", "a", ["1", "2", "3", "4", "5"]);
    expect(processed).toEqual(["1", "2"]);
    await nextTurn();
    expect(processed).toEqual(["1", "2", "3", "4"]);
    await nextTurn();
    expect(processed).toEqual(["1", "2", "3", "4", "5"]);
  });

  it("alternates between queues, so that a slow one delays the others by one slice", async () => {
    const { scheduler, processed } = given({ workMs: sendSliceMs });
    scheduler.add("o", "slow", ["s1", "s2", "s3"]);
    scheduler.add("o", "other", ["o1"]);
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect(processed).toEqual(["s1", "s2", "o1", "s3"]);
  });

  it("alternates between organizations with different numbers of queues", async () => {
    const { scheduler, processed } = given({ workMs: sendSliceMs });
    scheduler.add("busy", "first", ["b1", "b2"]);
    scheduler.add("busy", "second", ["b3"]);
    scheduler.add("busy", "third", ["b4"]);
    scheduler.add("other", "only", ["o1", "o2"]);
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(processed).toEqual(["b1", "b2", "o1", "b3", "o2", "b4"]);
  });

  it("processes an item that is added again only once, at its old position", async () => {
    const { scheduler, processed } = given({ workMs: sendSliceMs });
    scheduler.add("o", "a", ["1", "2", "3"]);
    scheduler.add("o", "a", ["3", "2", "1"]);
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
    expect(processed).toEqual(["1", "2", "3", "1"]);
  });

  it("processes the other items after one has failed", async () => {
    const processed: string[] = [];
    const scheduler = createFairScheduler<string>({
      *work(one) {
        processed.push(one);
        if (one === "fails") throw new Error("as intended");
        yield;
      },
      monotonicMs: () => 0,
    });
    expect(() => scheduler.add("organization", "queue", ["fails", "waits"])).toThrow("as intended");
    scheduler.add("organization", "queue", ["comes later"]);
    expect(processed).toEqual(["fails", "waits", "comes later"]);
  });

  it("processes no removed item, and no item after it was stopped", async () => {
    const { scheduler, processed } = given({ workMs: sendSliceMs });
    scheduler.add("o", "a", ["1", "2", "3"]);
    scheduler.remove("o", "a", "2");
    await nextTurn();
    expect(processed).toEqual(["1", "3"]);
    scheduler.add("o", "a", ["4", "5"]);
    scheduler.stop();
    await nextTurn();
    expect(processed).toEqual(["1", "3", "4"]);
  });
});

describe("given work that adds items", () => {
  it("processes items added to the same queue, another queue and another organization", async () => {
    const processed: string[] = [];
    const added: [string, string, string][] = [
      ["o", "a", "same queue"],
      ["o", "b", "another queue"],
      ["other", "a", "another organization"],
    ];
    const scheduler = createFairScheduler<string>({
      // biome-ignore lint/correctness/useYield: the work has a single step.
      *work(one) {
        processed.push(one);
        for (const [organization, queue, name] of added.splice(0))
          scheduler.add(organization, queue, [name]);
      },
      monotonicMs: () => 0,
    });
    scheduler.add("o", "a", ["first"]);
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect(processed).toEqual(["first", "same queue", "another organization", "another queue"]);
  });
});

describe("given an item that takes several slices", () => {
  it("continues it in the turns of its queue, before the next item of that queue", async () => {
    const { scheduler, done } = givenSteps(["long", "other"]);
    scheduler.add("o", "a", ["long", "after"]);
    scheduler.add("o", "b", ["other"]);
    for (let turn = 0; turn < 8; turn += 1) await nextTurn();
    const inTurn = ["long", "long", "other", "long", "other", "long!", "after", "other", "other!"];
    expect(done).toEqual(inTurn);
  });

  it("processes it again if it is added meanwhile", async () => {
    const { scheduler, done } = givenSteps(["long"]);
    scheduler.add("o", "a", ["long"]);
    scheduler.add("o", "a", ["long"]);
    for (let turn = 0; turn < 6; turn += 1) await nextTurn();
    expect(done).toEqual([...oneTurn("long"), ...oneTurn("long")]);
  });

  it("drops it when it is removed", async () => {
    const { scheduler, done } = givenSteps(["long"]);
    scheduler.add("o", "a", ["long", "after"]);
    await nextTurn();
    scheduler.remove("o", "a", "long");
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect(done).toEqual(["long", "long", "after"]);
  });
});

const oneTurn = (one: string) => [one, one, one, `${one}!`];

/** Creates a scheduler. Each step of a long item takes a whole slice; other items have no steps. */
function givenSteps(long: readonly string[]) {
  const done: string[] = [];
  let clockMs = 0;
  function* steps(one: string): Steps {
    for (let step = 0; step < 3; step += 1) {
      done.push(one);
      clockMs += sendSliceMs;
      yield;
    }
    done.push(`${one}!`);
  }
  const scheduler = createFairScheduler<string>({
    *work(one) {
      if (long.includes(one)) yield* steps(one);
      else done.push(one);
    },
    monotonicMs: () => clockMs,
  });
  return { scheduler, done };
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { createPatientWork, sliceMs } from "../../src/sdk/patient-work.ts";

/** Each step takes half a slice, by a clock of the test. */
function given(options: { mostWaiting?: number } = {}) {
  const done: string[] = [];
  let clockMs = 0;
  const patient = createPatientWork({ elapsed: () => clockMs, ...options });
  function* work(name: string, steps: number): Generator<undefined, void> {
    for (let step = 1; step <= steps; step += 1) {
      clockMs += sliceMs / 2;
      done.push(`${name}${step}`);
      yield;
    }
  }
  return { patient, work, done };
}

const always = () => true;

describe("given work that takes longer than a slice", () => {
  it("does a slice of it in each turn", async () => {
    const { patient, work, done } = given();
    expect(patient.begin(work("a", 5), always)).toBe(true);
    expect(done).toEqual([]);
    await nextTurn();
    expect(done).toEqual(["a1", "a2"]);
    await nextTurn();
    expect(done).toEqual(["a1", "a2", "a3", "a4"]);
    await nextTurn();
    expect(done).toHaveLength(5);
  });

  it("gives others that wait their turn", async () => {
    const { patient, work, done } = given();
    patient.begin(work("a", 4), always);
    patient.begin(work("b", 2), always);
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
    expect(done).toEqual(["a1", "a2", "b1", "b2", "a3", "a4"]);
  });

  it("drops what nobody waits for any more", async () => {
    const { patient, work, done } = given();
    let isWanted = true;
    patient.begin(work("a", 9), () => isWanted);
    await nextTurn();
    isWanted = false;
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect(done).toEqual(["a1", "a2"]);
  });

  it("takes no more than it may, and more again when there is room", async () => {
    const { patient, work, done } = given({ mostWaiting: 1 });
    expect(patient.begin(work("a", 1), always)).toBe(true);
    expect(patient.begin(work("b", 1), always)).toBe(false);
    for (let turn = 0; turn < 2; turn += 1) await nextTurn();
    expect(done).toEqual(["a1"]);
    expect(patient.begin(work("c", 1), always)).toBe(true);
  });
});

import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createCatchUp } from "../src/catch-up.ts";

/** A step of the simulation of a bucket with a history of one, its reader, and concurrent writes. */
type Step = { writeTo: number } | "deliver" | "answer";

const subjects = 4;
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.nat({ max: subjects - 1 }).map((writeTo) => ({ writeTo })),
  fc.constant("deliver" as const),
  fc.constant("answer" as const),
);

function simulate(before: readonly number[], steps: readonly Step[]) {
  const newest = new Map<number, number>();
  let lastSequence = 0;
  const write = (subject: number) => newest.set(subject, ++lastSequence);
  for (const subject of before) write(subject);
  const catchUp = createCatchUp({ from: 1, lastSequence });
  const delivered = new Set<number>();
  let position = 0;
  let looked: number | undefined;

  /** Returns the subjects that the reader lacks, if its state is "caught up". */
  function lacking(): number[] | undefined {
    if (catchUp.state === "caught up")
      return [...newest.keys()].filter(
        (subject) => before.includes(subject) && !delivered.has(subject),
      );
    if (catchUp.state === "unknown") {
      catchUp.lookingUp();
      looked = undefined;
    }
    return undefined;
  }

  function deliver(): void {
    const next = [...newest].filter(([, at]) => at > position).toSorted(([, a], [, b]) => a - b)[0];
    if (next === undefined) return;
    const [subject, sequence] = next;
    delivered.add(subject);
    position = sequence;
    catchUp.advanced(sequence);
  }

  const found = lacking();
  if (found !== undefined) return found;
  for (const each of steps) {
    if (each === "deliver") deliver();
    else if (each === "answer") {
      // The broker reads the last sequence in one step, and its response arrives in the next step of this kind.
      if (looked !== undefined) catchUp.found(looked);
      looked = looked === undefined ? lastSequence : undefined;
    } else write(each.writeTo);
    const lack = lacking();
    if (lack !== undefined) return lack;
  }
  return undefined;
}

describe("catching up", () => {
  it("ends only when the newest message of each subject has been delivered", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: subjects - 1 }), { maxLength: 8 }),
        fc.array(step, { maxLength: 60 }),
        (before, steps) => {
          expect(simulate(before, steps) ?? []).toEqual([]);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("does not end at the initial last sequence if a message was replaced before its delivery", () => {
    const replaced: Step[] = [{ writeTo: 0 }, "deliver"];
    expect(simulate([0, 1], replaced)).toBeUndefined();
    expect(simulate([0, 1], [...replaced, "answer", "answer", "deliver"])).toEqual([]);
  });

  it("ends even if another message arrives before each response", () => {
    const contended: Step[] = [{ writeTo: 0 }, "deliver"];
    const arriving: Step[] = [
      { writeTo: 2 },
      "answer",
      { writeTo: 3 },
      "answer",
      "deliver",
      "deliver",
    ];
    expect(simulate([0, 1], [...contended, ...arriving])).toEqual([]);
  });

  it("needs no delivery for an empty stream or after the end of a stream", () => {
    expect(createCatchUp({ from: 1, lastSequence: 0 }).state).toBe("caught up");
    expect(createCatchUp({ from: 8, lastSequence: 7 }).state).toBe("caught up");
    expect(createCatchUp({ from: 7, lastSequence: 7 }).state).toBe("behind");
  });
});

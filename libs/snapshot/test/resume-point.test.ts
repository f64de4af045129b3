import { snapshotBatchEntries } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { resumePoint } from "../src/resume-point.ts";

const dayMs = 24 * 60 * 60 * 1_000;
const held = { epoch: "one", revision: 2_000, currentAtMs: 10 * dayMs };
const found = { epoch: "one", lastSequence: 3_000, nowMs: held.currentAtMs + 1_000 };

describe("the resume point", () => {
  it("repeats the sequences that the relay publishes before it records them", () => {
    expect(resumePoint(held, found)).toBe(2_001 - snapshotBatchEntries);
  });

  it("is never below the first sequence", () => {
    expect(resumePoint({ ...held, revision: 3 }, found)).toBe(1);
  });

  it("does not exist for another epoch", () => {
    expect(resumePoint(held, { ...found, epoch: "two" })).toBeUndefined();
  });

  it("does not exist if the stream ends before the state", () => {
    expect(resumePoint(held, { ...found, lastSequence: 1_999 })).toBeUndefined();
  });

  it("does not exist if tombstones may have been removed, or if a clock has jumped", () => {
    expect(resumePoint(held, { ...found, nowMs: held.currentAtMs + dayMs })).toBeUndefined();
    expect(resumePoint(held, { ...found, nowMs: held.currentAtMs - dayMs })).toBeUndefined();
  });
});

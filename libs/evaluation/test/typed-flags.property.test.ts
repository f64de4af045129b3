import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  callersDefault,
  compile,
  compileAll,
  createContext,
  evaluateInSteps,
  explain,
  outcomesByCode,
  splitBucketOf,
} from "../src/index.ts";
import { contexts, ids, typedFlags } from "./random-flags.ts";
import { bucket, evaluateByReference, variationByReference } from "./reference-evaluator.ts";
import { runs } from "./thorough.ts";

describe("given any typed flag and any context", () => {
  it("returns the outcome and the variation of the reference evaluator", () => {
    fc.assert(
      fc.property(typedFlags, contexts, (flag, attributes) => {
        const { evaluate, variationOf } = compile(flag);
        const context = createContext(attributes);
        const outcome = evaluateByReference(flag, attributes);
        const key = variationByReference(flag, attributes);
        const index = variationOf?.(context);
        expect(evaluate(context)).toEqual(outcome);
        expect(index).toBe(flag.variations?.findIndex((variation) => variation.key === key));
        expect(explain(flag, context)).toMatchObject({ ...outcome, served: { index } });
        expect(resultOf(evaluateInSteps(compile(flag), context))).toEqual({
          outcome,
          variation: index,
        });
      }),
      { numRuns: runs(3_000) },
    );
  });

  it("returns the same outcomes for many flags together", () => {
    fc.assert(
      fc.property(fc.array(typedFlags, { maxLength: 6 }), contexts, (several, attributes) => {
        const codes = new Uint8Array(several.length);
        compileAll(several.map((flag) => compile(flag)))(createContext(attributes), codes);
        expect([...codes].map((code) => outcomesByCode[code])).toEqual(
          several.map((flag) => evaluateByReference(flag, attributes)),
        );
      }),
      { numRuns: runs(500) },
    );
  });
});

describe("the bucket of a split", () => {
  it("is murmur3 with seed 1, independent of the bucket of the percentage", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), ids, (key, id) => {
        expect(BigInt(splitBucketOf(key, String(id)))).toBe(bucket(key, String(id), 1n));
      }),
      { numRuns: runs(1_000) },
    );
  });
});

describe("malformed typed flags", () => {
  it.each<[string, object]>([
    ["a variation that does not exist", { serve: { variation: "none" } }],
    ["a text in place of what is served", { serve: "blue" }],
    ["a split that is no list", { serve: { split: 1 } }],
    ["shares that are no objects", { serve: { split: [null, 1] } }],
    ["ranges that are no pairs", { serve: { split: [{ variation: "a", ranges: [null, 1] }] } }],
    ["no serve", { serve: undefined }],
    ["an empty split", { serve: { split: [] } }],
    [
      "a split without the user's bucket",
      { serve: { split: [{ variation: "a", weight: 0, ranges: [] }] } },
    ],
  ])("with %s give the caller's default", (_, members) => {
    const flag = {
      ...{ key: "f", enabled: true, rollout_percentage: 100, targeting_rules: [] },
      ...{ value_type: "string" as const, variations: [{ key: "a" }], off_variation: null },
      ...members,
    };
    const context = createContext(new Map([["id", "u"]]));
    expect(compile(flag).variationOf?.(context)).toBe(callersDefault);
  });
});

function resultOf<T>(steps: Generator<undefined, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

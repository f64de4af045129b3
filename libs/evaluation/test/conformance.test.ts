import { readFileSync } from "node:fs";
import {
  type Evaluator,
  type Flag,
  type Outcome,
  readSuite,
  runCase,
  runSuite,
  type Weight,
} from "@halyard/conformance";
import { describe, expect, it } from "@jest/globals";
import { readAttribute } from "../src/attributes.ts";
import {
  allocateRanges,
  bucketOf,
  compile,
  contextOf,
  createContext,
  explain,
  findRulesProblem,
  findUnknown,
  hundredths,
  murmur3,
  operatorNames,
  type ResolvedState,
  readAttributes,
  splitBucketOf,
  type TargetingRule,
} from "../src/index.ts";
import { allocateByReference, bucketsOf, rangesOf } from "./reference-allocation.ts";
import {
  bucket,
  evaluateByReference,
  isUnknownByReference,
  variationByReference,
} from "./reference-evaluator.ts";

/**
 * Runs the cases of `conformance/`. The expected values do not come from this evaluator. They follow from Halyard's
 * rules and from public specifications.
 */
const evaluator: Evaluator = {
  evaluate(given, context) {
    const flag = given as ResolvedState;
    if (findUnknown(given) !== undefined) return null;
    const { constant, evaluate, variationOf } = compile(flag);
    const outcome = evaluate(contextOf(context));
    const read = readAttributes(context, "reject");
    if (!read.ok) throw new Error(`The context was rejected because of ${read.problem.attribute}.`);
    const prepared = createContext(read.attributes);
    expect(evaluate(prepared)).toEqual(outcome);
    expect(explain(flag, prepared)).toMatchObject(outcome);
    expect(constant ?? outcome).toEqual(outcome);
    if (variationOf === undefined) return outcome;
    const index = variationOf(contextOf(context));
    expect(variationOf(prepared)).toBe(index);
    expect(explain(flag, prepared)).toMatchObject({ served: { index } });
    return typedOutcome(given, outcome, given.variations?.[index]?.key);
  },
  bucket: bucketOf,
  splitBucket: splitBucketOf,
  allocateRanges(before, weights) {
    const earlier = before.map(({ variation, ranges }) => [variation, ranges] as const);
    const allocated = allocateRanges(new Map(earlier), weights.map(sizeOfWeight));
    return weights.map((each) => ({ ...each, ranges: allocated.get(each.variation) ?? [] }));
  },
  hash: murmur3,
  validateRules: (rules) => findRulesProblem(rules as TargetingRule[])?.pointer,
  readContext(json, onInvalid) {
    const source = JSON.parse(json) as object;
    const read = readAttributes(source, onInvalid);
    // Application code is never rejected: an invalid attribute counts as missing.
    const found = Object.keys({ id: "", ...source })
      .map((name) => [name, readAttribute(source, name)] as const)
      .filter(([name, value]) => value !== undefined && name !== "user_id");
    const ignoring = readAttributes(source, "ignore");
    expect(new Map(found)).toEqual(ignoring.ok ? ignoring.attributes : new Map());
    return read.ok
      ? { attributes: Object.fromEntries(read.attributes) }
      : { rejected: read.problem.attribute };
  },
};

/** Returns the outcome of a typed flag. Without a key it is the default of the application. */
function typedOutcome(
  { variations = [] }: Flag,
  { reason }: Pick<Outcome, "reason">,
  key: string | null | undefined,
): Outcome {
  const found = variations.find((variation) => variation.key === key);
  return { value: found?.value ?? null, variation: found?.key ?? null, reason };
}

const sizeOfWeight = ({ variation, weight }: Weight) => {
  const size = hundredths(weight);
  if (size === undefined) throw new Error(`The weight ${weight} has more than two decimals.`);
  return { variation, size };
};

/** The reference evaluator of these tests, which shares no code with the engine. */
const reference: Evaluator = {
  evaluate(given, context) {
    const flag = given as ResolvedState;
    if (isUnknownByReference(flag)) return null;
    const read = readAttributes(context, "reject");
    if (!read.ok) throw new Error(`The context was rejected because of ${read.problem.attribute}.`);
    const outcome = evaluateByReference(flag, read.attributes);
    if (given.variations === undefined) return outcome;
    return typedOutcome(given, outcome, variationByReference(flag, read.attributes));
  },
  bucket: (key, id) => Number(bucket(key, id)),
  splitBucket: (seed, unit) => Number(bucket(seed, unit, 1n)),
  allocateRanges(before, weights) {
    const earlier = new Map(before.map(({ variation, ranges }) => [variation, ranges]));
    const buckets = allocateByReference(
      before.length === 0 ? [] : bucketsOf(earlier),
      weights.map(({ variation, weight }) => ({ variation, size: Math.round(weight * 100) })),
    );
    return weights.map((each) => ({ ...each, ranges: rangesOf(each.variation, buckets) }));
  },
};

/** Files that the reference evaluator passes. It lacks a parser of RE2, and reads only well-formed rules. */
const filesOfReference = [
  ...["values", "value-types", "splits", "split-buckets", "ranges", "needs"],
  ...["bucket-by", "match-case", "buckets", "buckets-unicode", "bucket-edges", "rollout"],
  ...["rule-percentage", "rule-order", "deny-rules", "disabled", "no-id"],
].map((name) => `cases/${name}.json`);

describe("the conformance suite", () => {
  it.each(filesOfReference)("agrees with the reference evaluator: %s", async (path) => {
    const file = readSuite().files.find((each) => each.path === path);
    const results = (file?.cases ?? []).map((each) => runCase(reference, path, each));
    expect(results.length).toBeGreaterThan(0);
    expect((await Promise.all(results)).flat()).toEqual([]);
  });

  it("passes, every case of it", async () => {
    const { passed, skipped, unsupported, failures } = await runSuite(evaluator);
    expect(failures).toEqual([]);
    expect([skipped, unsupported]).toEqual([0, {}]);
    expect(passed).toBeGreaterThan(0);
  });

  it("has a file for each operator", () => {
    const titles = readSuite().files.map(({ title }) => title);
    expect(titles).toEqual(expect.arrayContaining([...operatorNames]));
  });

  it("names the operators of the catalogue in its schema", () => {
    const schema = new URL("../../../conformance/schema.json", import.meta.url);
    expect(JSON.parse(readFileSync(schema, "utf8"))).toMatchObject({
      $defs: { operatorName: { enum: [...operatorNames] } },
    });
  });
});

describe("murmur3", () => {
  it("returns the verification value that SMHasher publishes for murmur3 x86 32-bit", () => {
    const hashes = Buffer.alloc(256 * 4);
    for (let length = 0; length < 256; length++) {
      const bytes = Uint8Array.from({ length }, (_, index) => index);
      hashes.writeUInt32LE(murmur3(bytes, 256 - length), length * 4);
    }
    expect(murmur3(hashes)).toBe(0xb0_f5_7e_e3);
  });
});

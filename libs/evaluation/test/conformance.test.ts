import { readFileSync } from "node:fs";
import { type Evaluator, readSuite, runSuite } from "@halyard/conformance";
import { describe, expect, it } from "@jest/globals";
import { readAttribute } from "../src/attributes.ts";
import {
  bucketOf,
  compile,
  contextOf,
  createContext,
  explain,
  findRulesProblem,
  findUnknown,
  murmur3,
  operatorNames,
  type ResolvedState,
  readAttributes,
  type TargetingRule,
} from "../src/index.ts";

/**
 * Runs the cases of `conformance/`. The expected values do not come from this evaluator. They follow from Halyard's
 * rules and from public specifications.
 */
const evaluator: Evaluator = {
  evaluate(given, context) {
    const flag = given as ResolvedState;
    if (findUnknown(given) !== undefined) return null;
    const { constant, evaluate } = compile(flag);
    const outcome = evaluate(contextOf(context));
    const read = readAttributes(context, "reject");
    if (!read.ok) throw new Error(`The context was rejected because of ${read.problem.attribute}.`);
    const prepared = createContext(read.attributes);
    expect(evaluate(prepared)).toEqual(outcome);
    expect(explain(flag, prepared)).toMatchObject(outcome);
    expect(constant ?? outcome).toEqual(outcome);
    return outcome;
  },
  bucket: bucketOf,
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

describe("the conformance suite", () => {
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

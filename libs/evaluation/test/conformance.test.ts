import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import { readAttribute } from "../src/attributes.ts";
import {
  type AttributeValue,
  bucketOf,
  compile,
  contextOf,
  createContext,
  explain,
  type FlagState,
  findRulesProblem,
  murmur3,
  type OperatorName,
  type Outcome,
  operatorNames,
  readAttributes,
  type Scalar,
  type TargetingRule,
} from "../src/index.ts";

/**
 * Runs the cases of `conformance/` as its README describes. The expected values do not come from this evaluator. They
 * follow from Halyard's rules and from public specifications.
 */
const suiteFolder = new URL("../../../conformance/", import.meta.url);

type ConditionCase = {
  name: string;
  given?: AttributeValue | null;
  operator: OperatorName;
  value: Scalar | Scalar[];
  holds: boolean;
  malformed?: true;
};
type EvaluationCase = {
  name: string;
  flag: FlagState;
  context: object;
  expect: Outcome;
  malformed?: true;
};
type BucketCase = { name: string; flag_key: string; user_id: string; bucket: number };
type HashCase = { name: string; bytes_hex: string; seed_hex: string; hash_hex: string };
type RejectedRulesCase = { name: string; targeting_rules: TargetingRule[]; pointer: string };
type ContextCase = {
  name: string;
  json: string;
  attributes?: object;
  refused?: string;
  ofrep_attributes?: object;
};
type Cases = {
  conditions?: ConditionCase[];
  evaluations?: EvaluationCase[];
  buckets?: BucketCase[];
  hashes?: HashCase[];
  refused_rules?: RejectedRulesCase[];
  contexts?: ContextCase[];
};
type CaseFile = { title: string } & Cases;
type Suite = { version: string; files: { file: string; cases: number }[] };

/** Minimum number of cases, so that cases are not deleted by mistake. */
const fewestCases = 400;

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, suiteFolder), "utf8"));
}

function casesOf(file: CaseFile): { name: string }[] {
  return [
    ...(file.conditions ?? []),
    ...(file.evaluations ?? []),
    ...(file.buckets ?? []),
    ...(file.hashes ?? []),
    ...(file.refused_rules ?? []),
    ...(file.contexts ?? []),
  ];
}

/** Converts a condition case to a flag with one rule, whose only condition refers to the attribute `given`. */
function asEvaluation(condition: ConditionCase): EvaluationCase {
  const { name, given, operator, value, holds, malformed } = condition;
  const rule = { conditions: [{ attribute: "given", operator, value }] };
  return {
    name,
    flag: { key: "flag", enabled: true, rollout_percentage: 100, targeting_rules: [rule] },
    context: given === undefined ? {} : { given },
    expect: holds
      ? { value: true, variation: "on", reason: "targeting_match" }
      : { value: false, variation: "off", reason: "default" },
    ...(malformed ? { malformed } : {}),
  };
}

function checkEvaluation({ flag, context, expect: expected, malformed }: EvaluationCase): void {
  const read = readAttributes(context, "reject");
  if (!read.ok) throw new Error(`The context was rejected because of ${read.problem.attribute}.`);
  const prepared = createContext(read.attributes);
  const compiled = compile(flag);
  expect(compiled.evaluate(prepared)).toEqual(expected);
  expect(compiled.evaluate(contextOf(context))).toEqual(expected);
  expect(explain(flag, prepared)).toMatchObject(expected);
  if (compiled.constant !== undefined) expect(compiled.constant).toEqual(expected);
  expect(findRulesProblem(flag.targeting_rules) !== undefined).toBe(malformed === true);
}

function checkBucket({ flag_key, user_id, bucket }: BucketCase): void {
  expect(bucketOf(flag_key, user_id)).toBe(bucket);
  const context = createContext(new Map([["id", user_id]]));
  const isInside = (percentage: number): boolean =>
    compile({
      key: flag_key,
      enabled: true,
      rollout_percentage: percentage,
      targeting_rules: [],
    }).evaluate(context).value;
  const lastOutside = Math.floor(bucket / 100);
  expect(isInside(lastOutside)).toBe(false);
  expect(isInside(lastOutside + 1)).toBe(true);
}

function checkHash({ bytes_hex, seed_hex, hash_hex }: HashCase): void {
  const hash = murmur3(Buffer.from(bytes_hex, "hex"), Number.parseInt(seed_hex, 16));
  expect(hash.toString(16).padStart(8, "0")).toBe(hash_hex);
}

function checkContext({ json, attributes, refused, ofrep_attributes }: ContextCase): void {
  const source = JSON.parse(json) as object;
  const read = readAttributes(source, "reject");
  if (attributes !== undefined) {
    expect(read).toEqual({ ok: true, attributes: new Map(Object.entries(attributes)) });
  } else {
    expect(read).toMatchObject({ ok: false, problem: { attribute: refused } });
  }
  // Application code is never rejected: an invalid attribute counts as missing.
  const found = Object.keys({ id: "", ...source })
    .map((name) => [name, readAttribute(source, name)] as const)
    .filter(([name, value]) => value !== undefined && name !== "user_id");
  expect(new Map(found)).toEqual(new Map(Object.entries(ofrep_attributes ?? attributes ?? {})));
  if (ofrep_attributes !== undefined) {
    expect(readAttributes(source, "ignore")).toEqual({
      ok: true,
      attributes: new Map(Object.entries(ofrep_attributes)),
    });
  }
}

const suite = readJson("suite.json") as Suite;
const files = suite.files.map(({ file, cases }) => ({
  path: file,
  cases,
  content: readJson(file) as CaseFile,
}));

describe("the conformance suite", () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  const isCaseFile = ajv.compile(readJson("schema.json") as object);

  it.each(files)("has a file that matches the schema: $path", ({ content }) => {
    isCaseFile(content);
    expect(isCaseFile.errors ?? []).toEqual([]);
  });

  it.each(files)("states the number of cases of a file, whose names are unique: $path", (file) => {
    const names = casesOf(file.content).map(({ name }) => name);
    expect(names).toHaveLength(file.cases);
    expect(new Set(names).size).toBe(names.length);
  });

  it("lists every file in the folder", () => {
    const present = readdirSync(new URL("cases/", suiteFolder)).map((name) => `cases/${name}`);
    expect(files.map(({ path }) => path).toSorted()).toEqual(present.toSorted());
  });

  it("has a file for each operator", () => {
    const titles = files.map(({ content }) => content.title);
    expect(titles).toEqual(expect.arrayContaining([...operatorNames]));
  });

  it("names the operators of the catalogue in its schema", () => {
    expect(readJson("schema.json")).toMatchObject({
      $defs: { operatorName: { enum: [...operatorNames] } },
    });
  });

  it(`has at least ${fewestCases} cases`, () => {
    const total = files.reduce((sum, { content }) => sum + casesOf(content).length, 0);
    expect(total).toBeGreaterThanOrEqual(fewestCases);
  });
});

describe.each(files)("$content.title ($path)", ({ content }) => {
  // Loops, because `it.each` fails without cases, and most files have only one kind of case.
  for (const each of content.conditions ?? []) {
    it(each.name, () => checkEvaluation(asEvaluation(each)));
  }
  for (const each of content.evaluations ?? []) it(each.name, () => checkEvaluation(each));
  for (const each of content.buckets ?? []) it(each.name, () => checkBucket(each));
  for (const each of content.hashes ?? []) it(each.name, () => checkHash(each));
  for (const each of content.refused_rules ?? []) {
    it(each.name, () => {
      expect(findRulesProblem(each.targeting_rules)?.pointer).toBe(each.pointer);
    });
  }
  for (const each of content.contexts ?? []) it(each.name, () => checkContext(each));
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

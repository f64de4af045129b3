import { readFileSync } from "node:fs";
import {
  type Environment,
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
  type Audience,
  allocateRanges,
  bucketOf,
  bytesOfHex,
  type CompiledAudience,
  type CompiledFlag,
  compile,
  compileAudience,
  contextOf,
  createContext,
  explain,
  findMissing,
  findRulesProblem,
  findUnknown,
  findUnknownCondition,
  hundredths,
  murmur3,
  operatorNames,
  type References,
  type ResolvedState,
  readAttributes,
  referredKeys,
  SipHash,
  splitBucketOf,
  type TargetingRule,
} from "../src/index.ts";
import { allocateByReference, bucketsOf, rangesOf } from "./reference-allocation.ts";
import {
  bucket,
  createProject,
  evaluateByReference,
  isFoundByReference,
  isKnownOperator,
  operatorsOf,
  type ReferenceAudience,
  variationByReference,
} from "./reference-evaluator.ts";
import { fingerprintByReference } from "./reference-fingerprints.ts";

/**
 * Runs the cases of `conformance/`. The expected values do not come from this evaluator. They follow from Halyard's
 * rules and from public specifications.
 */
const evaluator: Evaluator = {
  evaluate(given, context, environment) {
    const flag = given as ResolvedState;
    const references = referencesOf(given, environment);
    if (references === undefined) return null;
    const { constant, evaluate, variationOf } = compile(flag, references);
    const outcome = evaluate(contextOf(context));
    const read = readAttributes(context, "reject");
    if (!read.ok) throw new Error(`The context was rejected because of ${read.problem.attribute}.`);
    const prepared = createContext(read.attributes);
    expect(evaluate(prepared)).toEqual(outcome);
    expect(explain(flag, prepared, references)).toMatchObject(outcome);
    expect(constant ?? outcome).toEqual(outcome);
    if (variationOf === undefined) return outcome;
    const index = variationOf(contextOf(context));
    expect(variationOf(prepared)).toBe(index);
    expect(explain(flag, prepared, references)).toMatchObject({ served: { index } });
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
  fingerprint(keyHex, text) {
    const hash = new SipHash(bytesOfHex(keyHex));
    hash.hash(text);
    return [hash.high, hash.low].map((half) => half.toString(16).padStart(8, "0")).join("");
  },
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

/**
 * Compiles what a flag refers to. Undefined if the flag is not found. `path` has the keys of the flags that require it.
 */
function referencesOf(
  flag: Flag,
  environment: Environment,
  path: readonly string[] = [],
): References | undefined {
  if (findUnknown(flag) !== undefined || path.includes(flag.key)) return undefined;
  const state = flag as ResolvedState;
  const references = {
    audiences: new Map<string, CompiledAudience>(),
    flags: new Map<string, CompiledFlag>(),
  };
  if (!state.enabled) return references;
  const keys = referredKeys(state);
  for (const key of keys.audiences) {
    const audience = audienceWith(key, environment);
    if (audience !== undefined) references.audiences.set(key, audience);
  }
  for (const required of environment.flags.filter(({ key }) => keys.flags.includes(key))) {
    const inner = referencesOf(required, environment, [...path, flag.key]);
    if (inner !== undefined)
      references.flags.set(required.key, compile(required as ResolvedState, inner));
  }
  return findMissing(state, references) === undefined ? references : undefined;
}

function audienceWith(
  key: string,
  { audiences, chunks }: Environment,
): CompiledAudience | undefined {
  const audience = new Map(Object.entries(audiences)).get(key) as Audience | undefined;
  if (audience === undefined || findUnknownCondition(audience.match.flat()) !== undefined)
    return undefined;
  const bytes = (audience.list?.chunks ?? []).map((sha256) => chunks[sha256]);
  if (bytes.includes(undefined)) return undefined;
  return compileAudience(
    audience,
    bytes.map((hex) => bytesOfHex(hex ?? "")),
  );
}

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
  evaluate(given, context, environment) {
    const flag = given as ResolvedState;
    const flags = environment.flags as readonly ResolvedState[];
    const project = createProject(
      new Map([flag, ...flags].map((each) => [each.key, each])),
      referenceAudiences(environment),
    );
    if (!isFoundByReference(flag, project)) return null;
    const read = readAttributes(context, "reject");
    if (!read.ok) throw new Error(`The context was rejected because of ${read.problem.attribute}.`);
    const outcome = evaluateByReference(flag, read.attributes, project);
    if (given.variations === undefined) return outcome;
    return typedOutcome(given, outcome, variationByReference(flag, read.attributes, project));
  },
  fingerprint: (keyHex, text) =>
    fingerprintByReference(keyHex, text).toString(16).padStart(16, "0"),
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

/** Returns the audiences that are known. Membership is a search for the fingerprint in the text of all chunks. */
function referenceAudiences({ audiences, chunks }: Environment): Map<string, ReferenceAudience> {
  const known = new Map<string, ReferenceAudience>();
  for (const [key, { match, list }] of Object.entries(audiences as Record<string, Audience>)) {
    const names = list?.chunks ?? [];
    if (!names.every((sha256) => sha256 in chunks)) continue;
    if (!operatorsOf(match.flat()).every(isKnownOperator)) continue;
    const fingerprints = names.flatMap((sha256) => chunks[sha256]?.match(/.{16}/g) ?? []);
    const has = (text: string) =>
      fingerprints.some(
        (hex) => BigInt(`0x${hex}`) === fingerprintByReference(list?.key ?? "", text),
      );
    known.set(key, { match, ...(list && { list: { attribute: list.attribute, has } }) });
  }
  return known;
}

/** Files that the reference evaluator passes. It lacks a parser of RE2, and reads only well-formed rules. */
const filesOfReference = [
  ...["values", "value-types", "splits", "split-buckets", "ranges", "needs"],
  ...["bucket-by", "match-case", "buckets", "buckets-unicode", "bucket-edges", "rollout"],
  ...["rule-percentage", "rule-order", "deny-rules", "disabled", "no-id"],
  ...["fingerprints", "audiences", "audience-lists", "requirements"],
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

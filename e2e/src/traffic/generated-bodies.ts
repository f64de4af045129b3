import { operatorNames } from "@halyard/contracts";
import { isThorough } from "@halyard/testing";
import { createGeneratorSync, type JsonSchema } from "json-schema-faker";
import { compileSchema } from "../checks/document-checks.ts";
import { type Random, seededRandom } from "../system/seeded-random.ts";
import { leftOut, selfContained } from "./bad-bodies.ts";
import { document, type Operation, resolve, type Schema } from "./openapi.ts";

/** Generates bodies for an operation. Most of them barely fit its schema, or barely violate it. */
type GeneratedBody = { body: unknown; problem: string | undefined };

/**
 * Replaces values of known fields with valid ones, where JSON Schema cannot describe which values are valid. Members of
 * typed flags are left out.
 */
export type Mend = (field: string, value: unknown) => unknown;

const samplesOfEachKind = isThorough ? 8 : 4;
const mutationsOfEach = isThorough ? 4 : 2;
const conditionsOfEachOperator = isThorough ? 4 : 1;
/** Deeper than every schema. The generator writes null below its limit. */
const maxDepth = 20;

export function generateBodies(
  { body: described, id }: Operation,
  { seed, mend }: { seed: number; mend: Mend },
): GeneratedBody[] {
  if (described === undefined) return [];
  const random = seededRandom(seed + id.length);
  const problemOf = compileSchema(described.schema);
  const samples = [described.example, ...samplesOf(described.schema as JsonSchema, seed)];
  const mutated = samples.flatMap((sample) =>
    Array.from({ length: mutationsOfEach }, () => mutate(sample, random)),
  );
  return [...samples, ...mutated, ...rulesOfEveryOperator(described, random), ...junk]
    .map((body) => mendAll(body, mend))
    .filter((body) => body !== undefined)
    .map((body) => ({ body, problem: problemOf(body) }));
}

function samplesOf(schema: JsonSchema, seed: number): unknown[] {
  const whole = generable({ ...(schema as object), components: document.components });
  const shared = { maxDepth, minItems: 0, maxItems: 2 };
  return [
    { ...shared, seed, optionalsProbability: 0 },
    { ...shared, seed: seed + 1_000, optionalsProbability: 0.5 },
    { ...shared, seed: seed + 2_000, alwaysFakeOptionals: true },
  ].flatMap((options) => {
    const generator = createGeneratorSync(options);
    return Array.from({ length: samplesOfEachKind }, () => {
      const { components: _, ...sample } = generator.generate(whole) as Record<string, unknown>;
      return sample;
    });
  });
}

function rulesOfEveryOperator(
  { schema, example }: NonNullable<Operation["body"]>,
  random: Random,
): unknown[] {
  if (resolve(schema).properties?.targeting_rules === undefined) return [];
  return operatorNames.flatMap((operator) =>
    Array.from({ length: conditionsOfEachOperator }, () => {
      const condition = { attribute: "plan", operator, value: random.oneOf(junk) };
      return { ...(example as object), targeting_rules: [{ conditions: [condition] }] };
    }),
  );
}

/** Keywords on which the generator fails. Its output without them is validated against the complete schema. */
const notGenerable = ["dependentSchemas", "minProperties"];

/** Conditions only compare attributes, because other flags and audiences would have to exist. */
function generable(schema: object): JsonSchema {
  return JSON.parse(
    JSON.stringify(schema, (name, part) => {
      if (notGenerable.includes(name)) return undefined;
      return name === "anyOf" ? selfContained(part as Schema[]) : part;
    }),
  );
}

const junk: unknown[] = [
  ...[null, true, false, 0, -1, 12.5, 1e300, "", "text", "5", "2.3.0", "2099-01-31T09:00:00Z"],
  ...["\u0000", "\ud800", " ", "a".repeat(300), [], ["DE", 5], [null], [{}], [[1]], {}, { a: {} }],
  ...[{ id: true }, { unexpected: 1 }, { user: { attributes: [] } }, { user: null }],
  ...[{ context: null }, { context: { id: true } }, { context: { targetingKey: "u", id: true } }],
];

/** Changes one random value in a copy of the body. */
function mutate(value: unknown, random: Random): unknown {
  const isLeaf = typeof value !== "object" || value === null || Object.keys(value).length === 0;
  if (isLeaf || random.upTo(4) === 0) return change(value, random);
  const copy = structuredClone(value) as Record<string, unknown>;
  const name = random.oneOf(Object.keys(copy));
  copy[name] = mutate(copy[name], random);
  return copy;
}

function change(value: unknown, random: Random): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return random.oneOf(junk);
  const members = value as Record<string, unknown>;
  if ("operator" in members)
    return { ...members, operator: random.oneOf(operatorNames), value: random.oneOf(junk) };
  const name = random.oneOf([...Object.keys(members), "unexpected"]);
  if (random.upTo(2) === 0) return { ...members, [name]: random.oneOf(junk) };
  const { [name]: _, ...others } = members;
  return others;
}

/** Applies `mend` to every value of a body. The field name of a condition's value contains the operator. */
export function mendAll(body: unknown, mend: Mend): unknown {
  return mended(body, "", mend);
}

function mended(value: unknown, field: string, mend: Mend): unknown {
  if (Array.isArray(value)) return value.map((item) => mended(item, field, mend));
  if (typeof value !== "object" || value === null) return mend(field, value);
  const given = Object.entries(value).filter(
    ([name]) => name !== "value_type" && !leftOut.has(name),
  );
  const members = given.map(([name, member]) => [
    name,
    value !== null && "operator" in value && name === "value"
      ? mend(`value of ${String(value.operator)}`, member)
      : mended(member, name, mend),
  ]);
  return Object.fromEntries(members);
}

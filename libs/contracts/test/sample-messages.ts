import { createGeneratorSync, type JsonSchema } from "json-schema-faker";

/** Returns messages that match a schema: without optional members, with some, and with all. */
export function sampleMessages(schema: JsonSchema): unknown[] {
  const withMapMembers = addMapMembers(schema) as JsonSchema;
  const shared = { maxDepth, minItems: 0, maxItems: 2 };
  const few = { ...shared, seed: 1, optionalsProbability: 0 };
  const some = { ...shared, seed: 1_001, optionalsProbability: 0.5 };
  const all = { ...shared, seed: 2_001, alwaysFakeOptionals: true };
  return [few, some, all].flatMap((options) => {
    const generator = createGeneratorSync(options);
    return Array.from({ length: samplesOfEach }, () => generator.generate(withMapMembers));
  });
}

/** Large enough that each value of the largest enum, the operators, occurs often. */
const samplesOfEach = 100;
/** Larger than the depth of every schema, because the generator writes null below its limit. */
const maxDepth = 20;

/** Adds a member with a fixed name to each map, which the generator would leave empty. */
function addMapMembers(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(addMapMembers);
  if (typeof node !== "object" || node === null) return node;
  const copy = Object.fromEntries(
    Object.entries(node).map(([name, value]) => [name, addMapMembers(value)]),
  );
  const { additionalProperties, propertyNames } = copy;
  if (typeof additionalProperties !== "object" || propertyNames === undefined) return copy;
  const name = createGeneratorSync({ seed: 1 }).generate(propertyNames as JsonSchema);
  return { ...copy, properties: { [String(name) || "name"]: additionalProperties } };
}

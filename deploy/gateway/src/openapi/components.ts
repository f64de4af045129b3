import * as contracts from "@halyard/contracts";
import { z } from "zod";

/**
 * The named schemas of the document. A schema that the contracts export has the name of its export. A schema that only
 * one route uses is named after the route. References replace each occurrence.
 */
export type JsonObject = Record<string, unknown>;

const prefix = "#/components/schemas/";

export type Components = {
  refer: (schema: z.ZodType) => JsonObject;
  define: (schema: z.ZodType) => JsonObject;
  /** Returns all definitions that a part of the document refers to, directly or indirectly. */
  referredTo: (part: unknown) => JsonObject;
};

export function createComponents(routes: readonly contracts.RouteContract[]): Components {
  const names = namedSchemas(routes);
  const registry = z.registry<{ id: string }>();
  for (const [schema, id] of names) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: "input",
    uri: (id) => `${prefix}${id}`,
    override: ({ zodSchema, jsonSchema }) => {
      contracts.replaceTuple(jsonSchema);
      if (zodSchema instanceof z.ZodDiscriminatedUnion)
        jsonSchema.discriminator = discriminatorOf(zodSchema, names);
    },
  });
  const definitions: JsonObject = {};
  for (const [name, { $schema, $id, ...definition }] of Object.entries(schemas as Definitions))
    definitions[name] = definition;

  const define = (schema: z.ZodType) => definitions[names.get(schema) ?? ""] as JsonObject;
  return {
    define,
    refer: (schema) => ({ $ref: prefix + names.get(schema) }),
    referredTo: (part) => {
      const found: JsonObject = {};
      collect(part, definitions, found);
      return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
    },
  };
}

/** Returns the OpenAPI discriminator of a union: its property, and the schema for each value of the property. */
function discriminatorOf(
  { def }: z.ZodDiscriminatedUnion,
  names: ReadonlyMap<z.ZodType, string>,
): JsonObject {
  const propertyName = def.discriminator;
  const mapping = def.options.flatMap((option) => {
    const { shape } = option as z.ZodObject<Record<string, z.ZodLiteral<string>>>;
    const name = names.get(option as z.ZodObject);
    return name === undefined ? [] : [[shape[propertyName]?.value, prefix + name]];
  });
  return { propertyName, mapping: Object.fromEntries(mapping) };
}

type Definitions = Record<string, JsonObject>;

function namedSchemas(routes: readonly contracts.RouteContract[]): Map<z.ZodType, string> {
  const names = new Map<z.ZodType, string>();
  for (const [name, value] of Object.entries(contracts))
    if (value instanceof z.ZodType) names.set(value, name);
  const nameUnlessKnown = (schema: z.ZodType | undefined, name: string) => {
    if (schema !== undefined && !names.has(schema)) names.set(schema, name);
  };
  for (const { operationId, params, query, body, success } of routes) {
    const own = operationId.charAt(0).toUpperCase() + operationId.slice(1);
    nameUnlessKnown(params, `${own}Params`);
    nameUnlessKnown(query, `${own}Query`);
    nameUnlessKnown(body, `${own}Body`);
    nameUnlessKnown(success.body, `${own}Answer`);
  }
  return names;
}

function collect(part: unknown, definitions: JsonObject, found: JsonObject): void {
  if (typeof part !== "object" || part === null) return;
  for (const [key, value] of Object.entries(part)) {
    if (key !== "$ref" || typeof value !== "string" || !value.startsWith(prefix)) {
      collect(value, definitions, found);
      continue;
    }
    const name = value.slice(prefix.length);
    if (name in found) continue;
    found[name] = definitions[name];
    collect(found[name], definitions, found);
  }
}

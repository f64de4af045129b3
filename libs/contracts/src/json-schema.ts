import { parseInstant } from "@halyard/evaluation";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { z } from "zod";
import { describeProblem } from "./describe-problem.ts";

/**
 * Schemas are written in zod and run by ajv. zod provides the TypeScript types and the JSON Schema that documents
 * them. ajv validates HTTP requests and messages. Schemas therefore use no refinements and no transforms, which JSON
 * Schema cannot express; domain code checks such rules.
 */
export type JsonSchema = Record<string, unknown>;

/** Returns the JSON Schema (draft 2020-12) of a zod schema, without `$schema`. */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      replaceTuple(jsonSchema);
      if (zodSchema instanceof z.ZodDiscriminatedUnion)
        // ajv accepts every value that is not an object, unless the schema says so.
        Object.assign(jsonSchema, {
          type: "object",
          discriminator: { propertyName: zodSchema.def.discriminator },
        });
    },
  }) as JsonSchema;
  return rest;
}

/** Replaces a tuple of equal items by an array of this length, which more programs for OpenAPI understand. */
export function replaceTuple(schema: z.core.JSONSchema.BaseSchema): void {
  const { prefixItems = [] } = schema;
  const [items] = prefixItems;
  if (items === undefined) return;
  delete schema.prefixItems;
  Object.assign(schema, { items, minItems: prefixItems.length, maxItems: prefixItems.length });
}

/** Creates the validator of the project: strict about schemas, with the formats in use. It never changes the data. */
export function createAjv({ discriminator = false } = {}): Ajv2020 {
  const shared = { allErrors: false, strict: true, strictTypes: false, verbose: true };
  const ajv = new Ajv2020({ ...shared, discriminator });
  // Otherwise a keyword of OpenAPI for programs that generate code, which validates nothing.
  if (!discriminator) ajv.addKeyword("discriminator");
  ajv.addFormat("date-time", (text: string) => parseInstant(text) !== undefined);
  ajv.addFormat("date", (text: string) => (parseInstant(`${text}T00:00:00Z`) ?? -1) >= 0);
  ajv.addFormat("uuid", /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i);
  return ajv;
}

/** One member selects the schema of a value in a union, so that the problem is that of this schema. */
const sharedAjv = createAjv({ discriminator: true });

function compile(described: z.ZodType) {
  const schema = toJsonSchema(described);
  return { schema, validate: sharedAjv.compile(schema) };
}

export type Checked<T> = { ok: true; value: T } | { ok: false; problem: string };

/**
 * Returns a function that checks unknown data against a schema. The result is the data, typed, or one sentence that
 * names the field by JSON pointer. The schema is compiled at the first check: most processes use only some of the
 * contracts, and compiling all of them takes a large part of their start.
 */
export function compileCheck<S extends z.ZodType>(
  schema: S,
): (data: unknown) => Checked<z.infer<S>> {
  let compiled: { schema: JsonSchema; validate: ValidateFunction } | undefined;
  return (data) => {
    compiled ??= compile(schema);
    return compiled.validate(data)
      ? { ok: true, value: data as z.infer<S> }
      : { ok: false, problem: describeProblem(compiled.validate.errors ?? [], compiled.schema) };
  };
}

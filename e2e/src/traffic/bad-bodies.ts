import { resolve, type Schema } from "./openapi.ts";

/** Generates bodies that a schema accepts, and bodies in which a single value is wrong in every possible way. */
export type IdsByField = Readonly<Record<string, string>>;

type Path = readonly (string | number)[];

/**
 * Members that the generated bodies lack: those of typed flags, because the bodies are for boolean flags, and those that
 * refer to other flags, which would have to exist.
 */
export const leftOut: ReadonlySet<string> = new Set([
  ...["variations", "serve", "off_variation"],
  "requires",
]);

const fieldsOf = ({ properties = {} }: Schema): [string, Schema][] =>
  Object.entries(properties).filter(([key]) => !leftOut.has(key));

/** Returns a body with a valid value for every field of the schema that boolean flags have. */
export function exampleOf(schema: Schema, ids: IdsByField, name = ""): unknown {
  const shape = resolve(schema);
  if (shape.const !== undefined) return shape.const;
  if (shape.enum !== undefined) return shape.enum[0];
  const options = shape.anyOf ?? shape.oneOf;
  if (options !== undefined) return exampleOf(selfContained(options)[0] as Schema, ids, name);
  switch ([shape.type].flat()[0]) {
    case "object":
      return Object.fromEntries(
        fieldsOf(shape).map(([key, field]) => [key, exampleOf(field, ids, key)]),
      );
    case "array":
      return [exampleOf(shape.items as Schema, ids, name)];
    case "string":
      return exampleText(shape, ids, name);
    case "integer":
    case "number":
      return Math.max(shape.minimum ?? 0, 1);
    case "boolean":
      return true;
    case "null":
      return null;
    case undefined:
      return "anything";
    default:
      throw new Error(`an example of ${String(shape.type)}`);
  }
}

/** Returns the options that refer to no other flag, audience or group of a provider, which would have to exist. */
export function selfContained(options: readonly Schema[]): Schema[] {
  const refers = ({ properties = {} }: Schema) =>
    ["flag", "audience", "group"].some((name) => name in properties);
  return options.filter((option) => !refers(resolve(option)));
}

function exampleText(shape: Schema, ids: IdsByField, name: string): string {
  if (name in ids) return ids[name] as string;
  if (shape.format === "uuid") return "00000000-0000-7000-8000-000000000000";
  if (shape.format === "date-time") return "2099-01-01T00:00:00Z";
  if (name === "email") return "someone@example.com";
  if (name === "plan") return "pro";
  // A request must not add and remove the same entry of a list.
  if (name === "remove") return "another example";
  return "example";
}

/** Returns copies of the example in which one value is wrong, for every value and every kind of error. */
export function wrongBodies(schema: Schema, ids: IdsByField): { what: string; body: unknown }[] {
  const example = exampleOf(schema, ids);
  return [...positions(schema, [])].flatMap(({ path, shape }) =>
    wrongValues(shape).map((wrong) => ({
      what: `/${path.join("/")} is ${JSON.stringify(wrong)?.slice(0, 40)}`,
      body: replaced(example, path, wrong),
    })),
  );
}

function* positions(schema: Schema, path: Path): Generator<{ path: Path; shape: Schema }> {
  const shape = resolve(schema);
  if (path.length > 0) yield { path, shape };
  for (const [key, field] of fieldsOf(shape)) yield* positions(field, [...path, key]);
  if (shape.type === "array") yield* positions(shape.items as Schema, [...path, 0]);
}

function wrongValues(shape: Schema): unknown[] {
  const alternatives = (shape.anyOf ?? shape.oneOf)?.map(resolve) ?? [shape];
  const allowed = new Set(alternatives.flatMap(({ type }) => type ?? []));
  const candidates: [string, unknown][] = [
    ["null", null],
    ["boolean", true],
    ["string", "\u0000\u0007 no such value \ud800"],
    ["number", 12.5],
    ["number", -1e300],
    ["object", { nested: { deep: [] } }],
    ["array", [[[]]]],
  ];
  if (allowed.size === 0) return [];
  return candidates
    .filter(([type]) => type === "string" || !allowed.has(type))
    .map(([, value]) => value);
}

function replaced(value: unknown, [first, ...rest]: Path, wrong: unknown): unknown {
  if (first === undefined) return wrong;
  if (Array.isArray(value))
    return value.map((item, index) => (index === first ? replaced(item, rest, wrong) : item));
  const object = value as Record<string, unknown>;
  return { ...object, [first]: replaced(object[first], rest, wrong) };
}

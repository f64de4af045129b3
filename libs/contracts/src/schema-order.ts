import { z } from "zod";

/**
 * Returns a function that writes the members of objects in the order of a schema, at any depth, and leaves out members
 * that the schema lacks. A value of a union stays as it is.
 */
export function compileOrder(schema: unknown): (value: unknown) => unknown {
  if (schema instanceof z.ZodOptional) return compileOrder(schema.unwrap());
  if (schema instanceof z.ZodArray) {
    const reorder = compileOrder(schema.element);
    return (value) => (Array.isArray(value) ? value.map(reorder) : value);
  }
  if (!(schema instanceof z.ZodObject)) return (value) => value;
  const members = Object.entries(schema.shape).map(([name, member]) => ({
    name,
    reorder: compileOrder(member),
  }));
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    const given = value as Record<string, unknown>;
    const present = members.filter(({ name }) => name in given);
    return Object.fromEntries(present.map(({ name, reorder }) => [name, reorder(given[name])]));
  };
}

import { type AttributeValue, readAttributes } from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/service";

/**
 * Attributes are kept in maps from the moment on that JSON is parsed: there a name like `__proto__`
 * is a key like any other. A map that one way to say who asks has made belongs to whoever reads it
 * next, who adds to it instead of copying it.
 */
export type AttributeMap = Map<string, AttributeValue>;

/** Where an object of attributes stands, for messages: its own name, and what its fields' begin with. */
export type Location = { name: string; fields: string };

/** Whether a parsed JSON value is an object, which an array is not. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads one object of attributes, of which nothing is ignored. */
export function readAttributeObject(source: object, location: Location): AttributeMap | Problem {
  const read = readAttributes(source, "reject");
  if (read.ok) return read.attributes;
  return createProblem("VALIDATION_001", describeProblem(read.problem, location));
}

/**
 * Only a name that is ours is repeated: the caller's own names of attributes may be as private as
 * their values.
 */
function describeProblem(
  { attribute, expected }: { attribute: string; expected: string },
  { name, fields }: Location,
): string {
  if (attribute === "id" || attribute === "user_id")
    return `${fields}${attribute} must be a string or a number`;
  return `${name} has an attribute that is not ${expected}`;
}

/** Adds what `more` knows and `attributes` does not, and answers the map that then knows both. */
export function addMissing(attributes: AttributeMap | undefined, more: AttributeMap): AttributeMap {
  if (attributes === undefined) return more;
  for (const [name, value] of more) if (!attributes.has(name)) attributes.set(name, value);
  return attributes;
}

/** The same for one attribute. */
export function addIfMissing(
  attributes: AttributeMap | undefined,
  name: string,
  value: AttributeValue,
): AttributeMap {
  if (attributes === undefined) return new Map<string, AttributeValue>().set(name, value);
  if (!attributes.has(name)) attributes.set(name, value);
  return attributes;
}

import { type AttributeValue, readAttributes } from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/http";

/**
 * The attributes of a context. They are kept in a map as soon as the JSON is parsed, because a map treats a name like
 * `__proto__` as an ordinary key. A reader passes its map on to the next one, which adds to it instead of copying it.
 */
export type AttributeMap = Map<string, AttributeValue>;

/** Location of an object of attributes, for error messages: its name, and the prefix of its fields' names. */
export type Location = { name: string; fields: string };

/** Returns whether a parsed JSON value is an object and not an array. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads one object of attributes. An invalid attribute is rejected, not ignored. */
export function readAttributeObject(source: object, location: Location): AttributeMap | Problem {
  const read = readAttributes(source, "reject");
  if (read.ok) return read.attributes;
  return createProblem("VALIDATION_001", describeProblem(read.problem, location));
}

/** Names only fields that Halyard defines. The client's own attribute names may be as private as their values. */
function describeProblem(
  { attribute, expected }: { attribute: string; expected: string },
  { name, fields }: Location,
): string {
  if (attribute === "id" || attribute === "user_id")
    return `${fields}${attribute} must be a string or a number`;
  return `${name} has an attribute that is not ${expected}`;
}

/** Adds the attributes of `more` that `attributes` lacks. Returns the map that has both. */
export function addMissing(attributes: AttributeMap | undefined, more: AttributeMap): AttributeMap {
  if (attributes === undefined) return more;
  for (const [name, value] of more) if (!attributes.has(name)) attributes.set(name, value);
  return attributes;
}

/** Adds one attribute unless the map has it. Returns the map. */
export function addIfMissing(
  attributes: AttributeMap | undefined,
  name: string,
  value: AttributeValue,
): AttributeMap {
  if (attributes === undefined) return new Map<string, AttributeValue>().set(name, value);
  if (!attributes.has(name)) attributes.set(name, value);
  return attributes;
}

export type Scalar = string | number | boolean;
export type AttributeValue = Scalar | readonly Scalar[];

/** What is known of a user, by name; `id` is the user's id. A name is there only when it was given. */
export type Attributes = ReadonlyMap<string, AttributeValue>;

export type ReadAttributes =
  | { ok: true; attributes: Map<string, AttributeValue> }
  /** Names the attribute, never its value. */
  | { ok: false; problem: { attribute: string; expected: string } };

/**
 * Reads the attributes of one JSON object. `user_id` is another name of `id`; an `id` in the same object wins. Null
 * counts as missing. So does an empty id, which would otherwise put all users without an id into one bucket. Objects,
 * nested arrays and numbers beyond a double are either refused or ignored, also as elements of an array. An id that is
 * a number beyond a double is always refused.
 */
export function readAttributes(source: object, nested: "reject" | "ignore"): ReadAttributes {
  const attributes = new Map<string, AttributeValue>();
  let otherId: string | undefined;
  const properties = source as Record<string, unknown>;
  for (const name of Object.keys(properties)) {
    const given = properties[name];
    if (given === null || given === undefined) continue;
    const value = nested === "ignore" && Array.isArray(given) ? given.filter(isScalar) : given;
    const isId = name === "id" || name === "user_id";
    if (!isAttributeValue(value)) {
      // Ignoring the number of such an id would evaluate for a user without an id.
      if (nested === "ignore" && !(isId && typeof value === "number")) continue;
      return problem(name, isId ? idValue : attributeValue);
    }
    if (!isId) {
      attributes.set(name, value);
      continue;
    }
    if (typeof value !== "string" && typeof value !== "number") return problem(name, idValue);
    if (value === "") continue;
    // An id is a text for every rule and for buckets: a number counts by its JSON text.
    const id = typeof value === "number" ? JSON.stringify(value) : value;
    if (name === "id") attributes.set("id", id);
    else otherId = id;
  }
  if (otherId !== undefined && !attributes.has("id")) attributes.set("id", otherId);
  return { ok: true, attributes };
}

const attributeValue = "a string, a number, true, false, or an array of these";
const idValue = "a string or a number";

function problem(attribute: string, expected: string): ReadAttributes {
  return { ok: false, problem: { attribute, expected } };
}

function isAttributeValue(value: unknown): value is AttributeValue {
  return Array.isArray(value) ? value.every(isScalar) : isScalar(value);
}

export function isScalar(value: unknown): value is Scalar {
  return typeof value === "number"
    ? Number.isFinite(value)
    : typeof value === "string" || typeof value === "boolean";
}

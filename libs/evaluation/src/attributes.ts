export type Scalar = string | number | boolean;
export type AttributeValue = Scalar | readonly Scalar[];

/** The attributes of a user by name. `id` is the user's id. A missing attribute has no entry. */
export type Attributes = ReadonlyMap<string, AttributeValue>;

export type ReadAttributes =
  | { ok: true; attributes: Map<string, AttributeValue> }
  /** The problem names the attribute but never contains its value. */
  | { ok: false; problem: { attribute: string; expected: string } };

/**
 * Reads the attributes of one JSON object. `user_id` is an alias of `id`; an `id` in the same object takes precedence.
 * Null counts as missing. So does an empty id, which would otherwise put all users without an id into one bucket.
 * `nested` determines whether objects, nested arrays and numbers beyond the range of a double are rejected or ignored,
 * also as elements of an array. An id that is a number beyond that range is always rejected.
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
      // An id beyond the range of a double is rejected: ignoring it would evaluate for a user without an id.
      if (nested === "ignore" && !(isId && typeof value === "number")) continue;
      return problem(name, isId ? idValue : attributeValue);
    }
    if (!isId) {
      attributes.set(name, value);
      continue;
    }
    if (typeof value !== "string" && typeof value !== "number") return problem(name, idValue);
    if (value === "") continue;
    // Rules and buckets use the id as a text. A numeric id counts as its JSON text.
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

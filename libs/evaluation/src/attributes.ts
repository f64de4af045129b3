export type Scalar = string | number | boolean;
export type AttributeValue = Scalar | readonly Scalar[];

/** The attributes of a user by name. `id` is the user's id. A missing attribute has no entry. */
export type Attributes = ReadonlyMap<string, AttributeValue>;

type ReadAttributes =
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
    const id = idTextOf(value);
    if (name === "id") attributes.set("id", id);
    else otherId = id;
  }
  if (otherId !== undefined && !attributes.has("id")) attributes.set("id", otherId);
  return { ok: true, attributes };
}

/**
 * Reads one attribute of an object from application code: an own property with a valid value. Everything else counts as
 * missing, also invalid elements of an array. `id` also reads its alias `user_id`.
 */
export function readAttribute(source: object, name: string): AttributeValue | undefined {
  if (name === "id") return readId(ownValue(source, "id")) ?? readId(ownValue(source, "user_id"));
  const value = ownValue(source, name);
  if (isScalar(value)) return value;
  return Array.isArray(value) ? value.filter(isScalar) : undefined;
}

/** Returns the text of an id, or undefined for an empty text and for values that are neither a text nor a number. */
function readId(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value;
  return typeof value === "number" && Number.isFinite(value) ? idTextOf(value) : undefined;
}

/**
 * Returns the names of the attributes that `contextOf` ignores, also in part, because of their types. Missing values are
 * not among them. Reads the whole object, so it is for diagnostics only.
 */
export function ignoredAttributes(attributes: unknown): string[] {
  if (!hasAttributes(attributes)) return [];
  return Object.entries(attributes)
    .filter(([name, value]) => {
      if (value === null || value === undefined || value === "") return false;
      return name === "id" || name === "user_id"
        ? readId(value) === undefined
        : !isAttributeValue(value);
    })
    .map(([name]) => name);
}

/** Returns whether a value from application code can have attributes. */
export function hasAttributes(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function ownValue(source: object, name: string): unknown {
  return Object.hasOwn(source, name) ? (source as Record<string, unknown>)[name] : undefined;
}

/** Rules and buckets use the id as a text. A numeric id counts as its JSON text. */
function idTextOf(id: string | number): string {
  return typeof id === "number" ? JSON.stringify(id) : id;
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

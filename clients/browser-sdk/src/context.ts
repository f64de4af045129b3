/** Value of an attribute. Other values are ignored. `null` and `undefined` count as missing. */
export type AttributeValue = string | number | boolean | readonly (string | number | boolean)[];

/**
 * The attributes of a user, side by side, as in the HTTP API. `user_id` is another name of `id`. A user without an id is
 * outside every percentage below 100.
 */
export type Context = {
  readonly [attribute: string]: AttributeValue | null | undefined;
  readonly id?: string | number | null | undefined;
};

type ReadContext = {
  /** The valid attributes as JSON in the order of their names, so that equal contexts have equal texts. */
  json: string;
  /** True if a part of the given context is invalid and was ignored. */
  hasInvalid: boolean;
};

/** Names of the id, which is a text or a number. The edge rejects other ids. */
const idName = /^(user_)?id$/;

/** Reads the context that an application gave. Invalid attributes, and contexts whose getters throw, are ignored. */
export function readContext(given: unknown): ReadContext {
  const source = (given ?? {}) as Record<string, unknown>;
  let hasInvalid = typeof source !== "object" || Array.isArray(source);
  const attributes = new Map<string, AttributeValue>();
  try {
    for (const name of hasInvalid ? [] : Object.keys(source).sort()) {
      const value = source[name];
      const isId = idName.test(name);
      if (value === undefined || value === null) continue;
      if (isScalar(value) && !(isId && typeof value === "boolean")) attributes.set(name, value);
      else if (Array.isArray(value) && !isId) {
        const items = value.filter(isScalar);
        attributes.set(name, items);
        hasInvalid ||= items.length < value.length;
      } else hasInvalid = true;
    }
  } catch {
    attributes.clear();
    hasInvalid = true;
  }
  return { json: JSON.stringify(Object.fromEntries(attributes)), hasInvalid };
}

function isScalar(value: unknown): value is string | number | boolean {
  return Number.isFinite(value) || typeof value === "string" || typeof value === "boolean";
}

/** Returns the same JSON in printable ASCII, because a header cannot contain other characters. */
export function asciiJson(json: string): string {
  return json.replace(
    /[\x7f-\uffff]/g,
    (character) => `\\u${(0x10000 + character.charCodeAt(0)).toString(16).slice(1)}`,
  );
}

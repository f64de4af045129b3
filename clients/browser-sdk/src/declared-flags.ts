export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [member: string]: JsonValue };

/** The types of flags, and of their values. */
export type ValueTypes = { boolean: boolean; string: string; number: number; object: JsonObject };

/** A value of a flag. */
export type FlagValue = ValueTypes[keyof ValueTypes];

/** The types of flags by key, from `defineFlags`. */
export type DeclaredFlags = Readonly<Record<string, keyof ValueTypes>>;

/** The declaration of an application: the types of its flags, or only a union of their keys. */
export type Declaration = string | DeclaredFlags;

/**
 * Declares the types of flags, so that the compiler rejects other keys and other types:
 * `const flags = defineFlags({ "checkout-color": "string" })` and `createClient<typeof flags>(…)`.
 */
export function defineFlags<const Flags extends DeclaredFlags>(flags: Flags): Flags {
  return flags;
}

/** Keys of the flags of a type. If only keys are declared, each of them can have any type. */
export type KeyOf<
  Flags extends Declaration,
  Type extends keyof ValueTypes = keyof ValueTypes,
> = Flags extends string
  ? Flags
  : Extract<{ [Key in keyof Flags]: Flags[Key] extends Type ? Key : never }[keyof Flags], string>;

/** The fallbacks that a flag can have. Interfaces are objects too, although they do not extend `JsonObject`. */
export type FallbackOf<Flags extends Declaration, Key> = Flags extends DeclaredFlags
  ? Key extends keyof Flags
    ? Flags[Key] extends "object"
      ? object
      : ValueTypes[Flags[Key]]
    : never
  : boolean | string | number | object;

/** The type of the value for a fallback: `string` for `"blue"`. Objects are frozen, and their members are not checked. */
export type Widened<Value> = Value extends boolean
  ? boolean
  : Value extends string
    ? string
    : Value extends number
      ? number
      : Frozen<Value>;

/** A value that is frozen at all levels. */
export type Frozen<T> = T extends readonly (infer Element)[]
  ? readonly Frozen<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T;

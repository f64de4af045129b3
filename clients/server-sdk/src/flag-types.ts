import type { ValueType } from "@halyard/evaluation";

/** The types of an application's flags, by key. */
export type FlagTypes = Readonly<Record<string, ValueType>>;

/**
 * Declares the types of flags for the compiler: `createClient<typeof flags>(…)` then accepts each key only in the methods
 * of its type. Returns its argument.
 */
export function defineFlags<const Types extends FlagTypes>(types: Types): Types {
  return types;
}

/** The keys of the flags of one type. Without declared types, every key can have every type. */
export type KeysOf<Flags extends string | FlagTypes, Type extends ValueType> = Flags extends string
  ? Flags
  : { [Key in keyof Flags]: Flags[Key] extends Type ? Key : never }[keyof Flags] & string;

/** A value of a flag: a boolean, a text, a number, or a JSON object. */
export type FlagValue = boolean | string | number | object;

/** A JSON value, frozen at all levels. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [member: string]: JsonValue };

/** The values of flags by key, each in its declared type. */
export type ValuesOf<Flags extends FlagTypes> = {
  [Key in keyof Flags]: {
    boolean: boolean;
    string: string;
    number: number;
    object: object;
  }[Flags[Key]];
};

/** A value that is frozen at all levels. */
export type Frozen<T> = T extends readonly (infer Element)[]
  ? readonly Frozen<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T;

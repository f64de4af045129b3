import type { AttributeName } from "./attribute-name.ts";
import {
  type Attributes,
  type AttributeValue,
  hasAttributes,
  readAttribute,
} from "./attributes.ts";
import { Elements, Subject, textOf } from "./subject.ts";
import { HashedUser } from "./user-hash.ts";

/** Number of slots for attributes: more than most rules refer to. A power of two. */
const slots = 16;
const noSlots: readonly undefined[] = Array.from({ length: slots }, () => undefined);

type Slot = {
  readonly name: string;
  readonly number: number;
  readonly subject: Subject | undefined;
};

let lastNumber = 0;

function nextNumber(): number {
  lastNumber += 1;
  return lastNumber;
}

/** Reads one attribute of a source. Returns undefined if it is missing. */
type Read = (source: object, name: string) => AttributeValue | undefined;

/**
 * The attributes of a user, shared by all flags that are evaluated for this user. Unused attributes cost nothing: a
 * value is read and its subject is created when the first condition refers to it, and the id is hashed for the first
 * percentage.
 *
 * An attribute is found by its number. The first two have fields of their own, so that evaluating a single flag
 * allocates no table (bench `evaluation`, rows "a new user for each flag"). The number of any other attribute selects a
 * slot. If two attributes share a slot, the later one takes it, and the other moves to a slower map. The map has names
 * as its keys because a name can get another number while a context lives. It contains no missing attributes, because
 * rules can refer to any number of names and the map of a long-lived context would grow without bound.
 */
export class EvaluationContext {
  readonly #source: object;
  readonly #read: Read;
  #firstNumber = -1;
  #first: Subject | undefined = undefined;
  #secondNumber = -1;
  #second: Subject | undefined = undefined;
  #slots: (Slot | undefined)[] | undefined = undefined;
  /** Subjects that lost their slot to another one, by name. */
  #displaced: Map<string, Subject> | undefined = undefined;
  /** 0 before it is read. Numbering each context would make evaluation without references slower by 5 %. */
  #number = 0;
  /** Undefined before the first percentage. */
  #user: HashedUser | null | undefined = undefined;
  /** Other units than the id, by the name of their attribute. Contains no missing ones, as above. */
  #units: Map<string, HashedUser> | undefined = undefined;

  constructor(source: object, read: Read) {
    this.#source = source;
    this.#read = read;
  }

  /** Unique in the process. Results that are remembered for a context have it instead of the context. */
  get number(): number {
    if (this.#number === 0) this.#number = nextNumber();
    return this.#number;
  }

  /** Returns the attribute with this name and number, or undefined if it is missing. */
  find(name: string, number: number): Subject | undefined {
    if (this.#firstNumber === number) return this.#first;
    if (this.#secondNumber === number) return this.#second;
    return this.#findOther(name, number);
  }

  /** The user's id, prepared for the bucket hash; null if there is no id. */
  get user(): HashedUser | null {
    return this.#user === undefined ? this.#prepareUser() : this.#user;
  }

  /** Returns the unit in an attribute, prepared for the bucket hash; null if it is no text and no number. */
  unitOf({ text: name, number }: AttributeName): HashedUser | null {
    const known = this.#units?.get(name);
    if (known !== undefined) return known;
    const subject = this.find(name, number);
    if (subject === undefined || !isUnit(subject)) return null;
    const unit = new HashedUser(subject.text);
    this.#units ??= new Map();
    this.#units.set(name, unit);
    return unit;
  }

  #findOther(name: string, number: number): Subject | undefined {
    if (this.#firstNumber === -1) {
      this.#firstNumber = number;
      this.#first = this.#prepare(name);
      return this.#first;
    }
    if (this.#secondNumber === -1) {
      this.#secondNumber = number;
      this.#second = this.#prepare(name);
      return this.#second;
    }
    this.#slots ??= noSlots.slice();
    const slot = this.#slots[number & (slots - 1)];
    return slot?.number === number ? slot.subject : this.#load(name, number, this.#slots);
  }

  #load(name: string, number: number, table: (Slot | undefined)[]): Subject | undefined {
    const displaced = table[number & (slots - 1)];
    if (displaced?.subject !== undefined) {
      this.#displaced ??= new Map();
      this.#displaced.set(displaced.name, displaced.subject);
    }
    const subject = this.#displaced?.get(name) ?? this.#prepare(name);
    table[number & (slots - 1)] = { name, number, subject };
    return subject;
  }

  #prepare(name: string): Subject | undefined {
    const value = this.#valueOf(name);
    if (value === undefined) return undefined;
    if (typeof value !== "object") return new Subject(value, undefined);
    return new Subject("", new Elements(value.map((element) => new Subject(element, undefined))));
  }

  /** `targetingKey` is OpenFeature's name of the id. An attribute with that name counts only without an id. */
  #valueOf(name: string): AttributeValue | undefined {
    if (name !== "id" && name !== "targetingKey") return this.#read(this.#source, name);
    return this.#read(this.#source, "id") ?? this.#read(this.#source, name);
  }

  #prepareUser(): HashedUser | null {
    const id = this.#read(this.#source, "id");
    const isId = typeof id === "string" || typeof id === "number";
    this.#user = isId ? new HashedUser(textOf(id)) : null;
    return this.#user;
  }
}

function isUnit({ value, elements }: Subject): boolean {
  return elements === undefined && typeof value !== "boolean" && value !== "";
}

/** Creates a context of attributes that `readAttributes` has validated. */
export function createContext(attributes: Attributes): EvaluationContext {
  return new EvaluationContext(attributes, readFromMap);
}

function readFromMap(attributes: object, name: string): AttributeValue | undefined {
  return (attributes as Attributes).get(name);
}

/** A context without attributes. Every condition fails, and every percentage below 100 excludes it. */
export const emptyContext: EvaluationContext = createContext(new Map());

/**
 * Creates a context of an object from application code, such as `{ id: "user-1", plan: "pro" }`. The object is neither
 * validated nor copied here. An attribute is read and validated when the first condition refers to it, and then kept.
 *
 * - Attributes are own properties. Inherited ones, such as the getters of a class, are missing.
 * - Invalid values count as missing, and so do invalid elements of an array (see `ignoredAttributes`). A value that is
 *   no object, or an array, has no attributes.
 * - `user_id` is an alias of `id`. A valid `id` takes precedence.
 * - If the object changes later, the context can return values from before or after the change.
 * - A getter or proxy runs when its attribute is read. Its exceptions reach the caller of `evaluate`.
 */
export function contextOf(attributes: unknown): EvaluationContext {
  return hasAttributes(attributes)
    ? new EvaluationContext(attributes, readAttribute)
    : emptyContext;
}

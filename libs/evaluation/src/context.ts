import type { Attributes, AttributeValue } from "./attributes.ts";
import { Elements, Subject, textOf } from "./subject.ts";
import { HashedUser } from "./user-hash.ts";

/** Number of slots for attributes: more than most rules refer to. A power of two. */
const slots = 16;
const noNumbers: readonly number[] = Array.from({ length: slots }, () => -1);
const noNames: readonly string[] = Array.from({ length: slots }, () => "");
const noSubjects: readonly undefined[] = Array.from({ length: slots }, () => undefined);

/**
 * The attributes of a user, prepared once so that all flags of a request share the work. Unused attributes cost
 * nothing: a subject is created when the first condition refers to it, and the id is hashed for the first percentage.
 *
 * The number of an attribute selects a slot, where finding it again takes one comparison. If two attributes share a
 * slot, the later one takes it, and the other moves to a slower map. The map has names as its keys because a name can
 * get another number while a context lives. It contains no missing attributes, because rules can refer to any number
 * of names and the map of a long-lived context would grow without bound.
 */
export class EvaluationContext {
  readonly #attributes: Attributes;
  /** The number of the name in each slot; -1 if the slot is empty. */
  readonly #numbers: number[] = noNumbers.slice();
  readonly #names: string[] = noNames.slice();
  readonly #subjects: (Subject | undefined)[] = noSubjects.slice();
  /** Subjects that lost their slot to another one, by name. */
  #displaced: Map<string, Subject> | undefined = undefined;
  #user: HashedUser | undefined = undefined;

  constructor(attributes: Attributes) {
    this.#attributes = attributes;
  }

  /** Returns the attribute with this name and number, or undefined if it is missing. */
  find(name: string, number: number): Subject | undefined {
    const slot = number & (slots - 1);
    return this.#numbers[slot] === number ? this.#subjects[slot] : this.#load(name, number, slot);
  }

  /** The user's id, prepared for the bucket hash; undefined if there is no id. */
  get user(): HashedUser | undefined {
    return this.#user ?? this.#prepareUser();
  }

  #load(name: string, number: number, slot: number): Subject | undefined {
    const displaced = this.#subjects[slot];
    if (displaced !== undefined) {
      this.#displaced ??= new Map();
      this.#displaced.set(this.#names[slot] ?? "", displaced);
    }
    const subject = this.#displaced?.get(name) ?? this.#prepare(name);
    this.#numbers[slot] = number;
    this.#names[slot] = name;
    this.#subjects[slot] = subject;
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
    const id = name === "targetingKey" ? this.#attributes.get("id") : undefined;
    return id ?? this.#attributes.get(name);
  }

  #prepareUser(): HashedUser | undefined {
    const id = this.#attributes.get("id");
    if (typeof id !== "string" && typeof id !== "number") return undefined;
    this.#user = new HashedUser(textOf(id));
    return this.#user;
  }
}

export function createContext(attributes: Attributes): EvaluationContext {
  return new EvaluationContext(attributes);
}

/** A context without attributes. Every condition fails, and every percentage below 100 excludes it. */
export const emptyContext: EvaluationContext = new EvaluationContext(new Map());

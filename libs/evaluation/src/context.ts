import type { Attributes, AttributeValue } from "./attributes.ts";
import { Elements, Subject, textOf } from "./subject.ts";
import { HashedUser } from "./user-hash.ts";

/** Attributes that a context finds at once: more than most rules ask for. A power of two. */
const slots = 16;
const noNumbers: readonly number[] = Array.from({ length: slots }, () => -1);
const noNames: readonly string[] = Array.from({ length: slots }, () => "");
const noSubjects: readonly undefined[] = Array.from({ length: slots }, () => undefined);

/**
 * Who asks, prepared once so that all flags of a request share the work. Attributes that no rule asks
 * for cost nothing: a subject is made when the first condition looks for it, and the id is hashed when
 * the first percentage needs it.
 *
 * An attribute's number gives it a place, where finding it again is one comparison. Where two share a
 * place, the later one takes it, and the other is found in a map, more slowly. Contexts may live long,
 * rules may ask for any number of names, and a name may get another number, so that map has names, and
 * only such as are not missing.
 */
export class EvaluationContext {
  readonly #attributes: Attributes;
  /** The numbers of the names that stand at each place; none is below zero. */
  readonly #numbers: number[] = noNumbers.slice();
  readonly #names: string[] = noNames.slice();
  readonly #subjects: (Subject | undefined)[] = noSubjects.slice();
  /** Those that had to make place for others, by name. */
  #displaced: Map<string, Subject> | undefined = undefined;
  #user: HashedUser | undefined = undefined;

  constructor(attributes: Attributes) {
    this.#attributes = attributes;
  }

  /** The attribute of this name and number, or undefined when it is missing. */
  find(name: string, number: number): Subject | undefined {
    const slot = number & (slots - 1);
    return this.#numbers[slot] === number ? this.#subjects[slot] : this.#bring(name, number, slot);
  }

  /** The user's id as buckets know it; undefined when there is none. */
  get user(): HashedUser | undefined {
    return this.#user ?? this.#prepareUser();
  }

  #bring(name: string, number: number, slot: number): Subject | undefined {
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

  /** OpenFeature's name of the id. An attribute of that name counts only without an id. */
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

/** Nobody is known to ask: every condition fails, and so does every percentage below 100. */
export const emptyContext: EvaluationContext = new EvaluationContext(new Map());

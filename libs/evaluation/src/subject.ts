import type { Scalar } from "./attributes.ts";
import { foldCase } from "./fold-case.ts";
import { parseInstant } from "./instant.ts";
import { parseNumber } from "./number-text.ts";
import { compareVersions, parseVersion, type Version } from "./semver.ts";
import { textNumber } from "./text-number.ts";

/**
 * The value of one attribute in the forms that conditions compare: folded text, number, instant and version. Each form
 * is computed when the first condition needs it, then cached, because many flags use the same attributes. A cached form
 * never changes, and lives as long as its context.
 *
 * Undefined means "not computed yet". NaN and null mean that the value has no such form.
 */
export class Subject {
  readonly value: Scalar;
  /** The elements of an array attribute. `value` is meaningless then. */
  readonly elements: Elements | undefined;
  #text: string | undefined = undefined;
  #folded: string | undefined = undefined;
  #foldedNumber = -1;
  #number: number | undefined = undefined;
  #instant: number | undefined = undefined;
  #version: Version | null | undefined = undefined;

  constructor(value: Scalar, elements: Elements | undefined) {
    this.value = value;
    this.elements = elements;
  }

  /** A string unchanged; a number or boolean as JSON text. */
  get text(): string {
    this.#text ??= textOf(this.value);
    return this.#text;
  }

  get folded(): string {
    return this.#folded ?? this.#fold();
  }

  /** The number of the folded text. Texts with different numbers are different. */
  get foldedNumber(): number {
    return this.#foldedNumber === -1 ? this.#compareBy() : this.#foldedNumber;
  }

  /** NaN, for which every comparison is false, if the value is neither a number nor a numeric text. */
  get number(): number {
    this.#number ??= numberOf(this.value);
    return this.#number;
  }

  /** Milliseconds since 1970, or NaN if the value is not a date-time. */
  get instant(): number {
    this.#instant ??= instantOf(this.value);
    return this.#instant;
  }

  /** Null if the value is not a version. Only a text can be one: the number 1.10 equals 1.1. */
  get version(): Version | null {
    if (this.#version === undefined) this.#version = versionOf(this.value) ?? null;
    return this.#version;
  }

  #fold(): string {
    this.#folded = foldCase(this.text);
    return this.#folded;
  }

  #compareBy(): number {
    this.#foldedNumber = textNumber(this.folded);
    return this.#foldedNumber;
  }
}

export function textOf(value: Scalar): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function numberOf(value: Scalar): number {
  if (typeof value === "number") return value;
  return typeof value === "string" ? parseNumber(value) : Number.NaN;
}

export function instantOf(value: Scalar): number {
  return typeof value === "string" ? (parseInstant(value) ?? Number.NaN) : Number.NaN;
}

export function versionOf(value: Scalar): Version | undefined {
  return typeof value === "string" ? parseVersion(value) : undefined;
}

/**
 * The elements of an array attribute. There can be tens of thousands of elements and thousands of conditions. Therefore
 * a condition does not scan the elements. It uses one of these, computed for the first condition and then cached: the
 * set of texts, the joined texts, the smallest and largest number, or the sorted versions.
 */
export class Elements {
  readonly subjects: readonly Subject[];
  #folded: Texts | undefined = undefined;
  #exact: Texts | undefined = undefined;
  #joinedLength: number | undefined = undefined;
  #numbers: Range | undefined = undefined;
  #instants: Range | undefined = undefined;
  #versions: readonly Version[] | undefined = undefined;

  constructor(subjects: readonly Subject[]) {
    this.subjects = subjects;
  }

  get isEmpty(): boolean {
    return this.subjects.length === 0;
  }

  get folded(): Texts {
    this.#folded ??= new Texts(this.subjects.map(({ folded }) => folded));
    return this.#folded;
  }

  get exact(): Texts {
    this.#exact ??= new Texts(this.subjects.map(({ text }) => text));
    return this.#exact;
  }

  /** The length of all texts joined by commas. */
  get joinedLength(): number {
    this.#joinedLength ??= this.subjects.reduce((sum, { text }) => sum + text.length + 1, -1);
    return this.#joinedLength;
  }

  get numbers(): Range {
    this.#numbers ??= rangeOf(this.subjects.map(({ number }) => number));
    return this.#numbers;
  }

  get instants(): Range {
    this.#instants ??= rangeOf(this.subjects.map(({ instant }) => instant));
    return this.#instants;
  }

  /** The elements that are versions, sorted by precedence. */
  get versions(): readonly Version[] {
    this.#versions ??= this.subjects
      .map(({ version }) => version)
      .filter((version) => version !== null)
      .sort(compareVersions);
    return this.#versions;
  }
}

/** The distinct texts of an array. */
export class Texts {
  readonly texts: ReadonlySet<string>;
  #joined: Joined | null | undefined = undefined;

  constructor(texts: readonly string[]) {
    this.texts = new Set(texts);
  }

  /** The texts, joined. Undefined if they use every code unit and none is free as a separator. */
  get joined(): Joined | undefined {
    if (this.#joined === undefined) this.#joined = join([...this.texts]) ?? null;
    return this.#joined ?? undefined;
  }
}

/** Without numbers, `smallest` is infinity and `largest` minus infinity, so that every comparison is false. */
export type Range = { readonly smallest: number; readonly largest: number };

function rangeOf(numbers: readonly number[]): Range {
  let smallest = Number.POSITIVE_INFINITY;
  let largest = Number.NEGATIVE_INFINITY;
  for (const number of numbers) {
    if (number < smallest) smallest = number;
    if (number > largest) largest = number;
  }
  return { smallest, largest };
}

/** Texts joined by `border`, a code unit that none of them contains. It also precedes and follows them. */
type Joined = { readonly text: string; readonly border: string };

function join(texts: readonly string[]): Joined | undefined {
  const isUsed = new Uint8Array(0x10000);
  for (const text of texts) {
    for (let i = 0; i < text.length; i++) isUsed[text.charCodeAt(i)] = 1;
  }
  const free = isUsed.indexOf(0);
  if (free === -1) return undefined;
  const border = String.fromCharCode(free);
  return { text: `${border}${texts.join(border)}${border}`, border };
}

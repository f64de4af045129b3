import type { Scalar } from "./attributes.ts";
import { foldCase } from "./fold-case.ts";
import { parseInstant } from "./instant.ts";
import { parseNumber } from "./number-text.ts";
import { compareVersions, parseVersion, type Version } from "./semver.ts";
import { textNumber } from "./text-number.ts";

/**
 * One attribute as conditions ask about it. What it means as a folded text, a number, an instant or a
 * version is found out when the first condition asks, and kept: many flags ask the same of one user.
 * Nothing here is ever changed after that, and nothing outlives the context that holds it.
 *
 * Undefined means "not asked yet"; NaN and null mean "asked, and it is none".
 */
export class Subject {
  readonly value: Scalar;
  /** The elements of an array attribute; then `value` means nothing. */
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

  /** A string as it is; numbers and booleans as JSON writes them. */
  get text(): string {
    this.#text ??= textOf(this.value);
    return this.#text;
  }

  get folded(): string {
    return this.#folded ?? this.#fold();
  }

  /** What the folded text is compared by. */
  get foldedNumber(): number {
    return this.#foldedNumber === -1 ? this.#compareBy() : this.#foldedNumber;
  }

  /** NaN, which compares with nothing, when it is no number and no numeric text. */
  get number(): number {
    this.#number ??= numberOf(this.value);
    return this.#number;
  }

  /** Milliseconds since 1970, or NaN when it is no date-time. */
  get instant(): number {
    this.#instant ??= instantOf(this.value);
    return this.#instant;
  }

  /** Null when it is no version. Only a text can be one: as a number, 1.10 would be 1.1. */
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
 * The elements of an array attribute. There may be tens of thousands, and thousands of conditions may ask
 * about them, so what answers a condition without going through all of them is made when the first one
 * asks, and kept: the set of their texts, their texts in one, their smallest and largest numbers, their
 * versions in order.
 */
export class Elements {
  readonly subjects: readonly Subject[];
  #texts: ReadonlySet<string> | undefined = undefined;
  #joined: Joined | null | undefined = undefined;
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

  /** The folded texts. */
  get texts(): ReadonlySet<string> {
    this.#texts ??= new Set(this.subjects.map(({ folded }) => folded));
    return this.#texts;
  }

  /** The folded texts in one, each once; undefined when no code unit is left to stand between them. */
  get joined(): Joined | undefined {
    if (this.#joined === undefined) this.#joined = join([...this.texts]) ?? null;
    return this.#joined ?? undefined;
  }

  /** The length of all texts as if joined by commas. */
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

  /** Those that are versions, by precedence. */
  get versions(): readonly Version[] {
    this.#versions ??= this.subjects
      .map(({ version }) => version)
      .filter((version) => version !== null)
      .sort(compareVersions);
    return this.#versions;
  }
}

/** From infinity to minus infinity when there is none, so that every comparison with a number is false. */
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

/** Texts with a code unit before, between and after them that none of them has. */
export type Joined = { readonly text: string; readonly border: string };

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

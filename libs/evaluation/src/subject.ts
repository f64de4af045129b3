import type { Elements } from "./elements.ts";
import type { Scalar } from "./flag-state.ts";
import { foldCase } from "./fold-case.ts";
import { parseInstant } from "./instant.ts";
import { parseNumber } from "./number-text.ts";
import { parseVersion, type Version } from "./semver.ts";
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

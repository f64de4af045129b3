import type { Obstacle } from "./operators/operator.ts";
import { compareVersions, type Version } from "./semver.ts";
import type { Subject } from "./subject.ts";

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

  /** What stands in the way of comparing them, when none of them can be compared. */
  firstObstacle(obstacle: (subject: Subject) => Obstacle | undefined): Obstacle | undefined {
    const [first] = this.subjects;
    return first === undefined ? undefined : obstacle(first);
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

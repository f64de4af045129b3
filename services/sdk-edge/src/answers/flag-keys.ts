import { createHash } from "node:crypto";
import { DigestSum } from "./digests.ts";

/**
 * Maximum number of flags for which tags contain a hash of the list of keys, and each value. With more flags, such a
 * tag would make every request larger, and each new or deleted flag would hash all keys again.
 */
const maxListed = 1_024;

/**
 * The keys of an environment's flags, in order, with everything that is prepared from the keys alone. Changes of states
 * and rules do not affect it. Creating or deleting a flag replaces the keys of one segment. The text of the other
 * segments is copied as bytes when a request needs it.
 */
export class FlagKeys {
  readonly segments: readonly SegmentKeys[];
  readonly size: number;
  #digest: Buffer | undefined;
  #outcomes: OutcomeBuffer | undefined;

  constructor(segments: readonly SegmentKeys[]) {
    this.segments = segments;
    this.size = segments.reduce((size, { keys }) => size + keys.length, 0);
  }

  /** Buffer for the outcomes of an evaluation. The next evaluation reuses it. */
  get outcomes(): OutcomeBuffer {
    this.#outcomes ??= createOutcomeBuffer(this);
    return this.#outcomes;
  }

  /** Hash of the set of keys. It does not depend on the segments. */
  get digest(): Buffer {
    this.#digest ??= this.isLarge ? sumOf(this.segments) : digestOfList(this.segments);
    return this.#digest;
  }

  /**
   * True if tags consist of the sum of the keys and a hash of the values. Otherwise they consist of the hash of the
   * list and the values.
   */
  get isLarge(): boolean {
    return this.size > maxListed;
  }
}

/** A buffer with one byte for the outcome code of each flag, and the part of it that belongs to each segment. */
type OutcomeBuffer = { all: Uint8Array; ofSegments: readonly Uint8Array[] };

function createOutcomeBuffer({ segments, size }: FlagKeys): OutcomeBuffer {
  const all = new Uint8Array(size);
  let begin = 0;
  const ofSegments = segments.map(({ keys }) => {
    const part = all.subarray(begin, begin + keys.length);
    begin += keys.length;
    return part;
  });
  return { all, ofSegments };
}

function digestOfList(segments: readonly SegmentKeys[]): Buffer {
  const keys = segments.flatMap((segment) => segment.keys);
  return createHash("sha256").update(JSON.stringify(keys)).digest();
}

function sumOf(segments: readonly SegmentKeys[]): Buffer {
  const sum = new DigestSum();
  for (const segment of segments) sum.addSum(segment.sum);
  return sum.digest();
}

export class SegmentKeys {
  readonly keys: readonly string[];
  readonly #templates = new Map<TemplateShape, Template>();
  #sum: DigestSum | undefined;

  constructor(keys: readonly string[]) {
    this.keys = keys;
  }

  get sum(): DigestSum {
    if (this.#sum === undefined) {
      this.#sum = new DigestSum();
      for (const key of this.keys) this.#sum.add(key);
    }
    return this.#sum;
  }

  templateOf(shape: TemplateShape): Template {
    let template = this.#templates.get(shape);
    if (template === undefined) {
      template = writeTemplate(this.keys, shape);
      this.#templates.set(shape, template);
    }
    return template;
  }
}

/** The text of one flag, with a position for the text of its outcome, which has a fixed length. */
export type TemplateShape = {
  beforeKey: string;
  afterKey: string;
  /** The initial text at the position. */
  position: string;
  afterPosition: string;
};

/** ASCII text of all flags, separated by commas, and the offset of each position in it. */
type Template = { bytes: Buffer; positions: Int32Array };

function writeTemplate(keys: readonly string[], shape: TemplateShape): Template {
  const positions = new Int32Array(keys.length);
  let text = "";
  keys.forEach((key, index) => {
    text += `${index === 0 ? "" : ","}${shape.beforeKey}${asciiJson(key)}${shape.afterKey}`;
    positions[index] = text.length;
    text += shape.position + shape.afterPosition;
  });
  return { bytes: Buffer.from(text, "latin1"), positions };
}

const comma = 0x2c;

/** Returns the text of all flags between a beginning and an end, in a new buffer with `spareBytes` after it. */
export function joinTemplates(
  { segments, size }: FlagKeys,
  shape: TemplateShape,
  { begin, end, spareBytes = 0 }: { begin: string; end: string; spareBytes?: number },
): Template & { length: number } {
  const parts = filled(segments).map((segment) => segment.templateOf(shape));
  const commas = Math.max(0, parts.length - 1);
  const flagBytes = parts.reduce((sum, { bytes }) => sum + bytes.length, commas);
  const length = begin.length + flagBytes + end.length;
  const bytes = Buffer.alloc(length + spareBytes);
  const positions = new Int32Array(size);
  let offset = bytes.write(begin, "latin1");
  let flag = 0;
  for (const part of parts) {
    if (flag > 0) bytes[offset++] = comma;
    bytes.set(part.bytes, offset);
    for (const position of part.positions) positions[flag++] = offset + position;
    offset += part.bytes.length;
  }
  bytes.write(end, offset, "latin1");
  return { bytes, positions, length };
}

/** Removes the empty segment of an environment without flags. */
function filled(segments: readonly SegmentKeys[]): readonly SegmentKeys[] {
  return segments.filter(({ keys }) => keys.length > 0);
}

/** Returns a value as JSON in ASCII. All other characters are escaped. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(beyondAscii, escapeCharacter);
}

const beyondAscii = /[\u0080-\uffff]/g;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

import { createHash } from "node:crypto";
import { asciiJson } from "./ascii-json.ts";
import { DigestSum } from "./digest-sum.ts";

/**
 * Up to this number of flags, the list of keys is hashed and tags say each value. Beyond it, a tag that
 * says each value would burden every request, and a change would hash the keys of all flags.
 */
const maxListed = 1_024;

/**
 * The keys of an environment's flags, in order, with everything that is prepared from keys alone. Changes
 * of states and rules leave it as it is. Creating or deleting a flag replaces the keys of one segment; the
 * text of the others is copied as bytes when a request needs it.
 */
export class FlagKeys {
  readonly segments: readonly SegmentKeys[];
  readonly size: number;
  #digest: Buffer | undefined;
  #outcomes: OutcomePositions | undefined;

  constructor(segments: readonly SegmentKeys[]) {
    this.segments = segments;
    this.size = segments.reduce((size, { keys }) => size + keys.length, 0);
  }

  /** Places for an evaluation, which the next one uses again. */
  get outcomes(): OutcomePositions {
    this.#outcomes ??= createOutcomePositions(this);
    return this.#outcomes;
  }

  /** Hash of the set of keys. It does not depend on the segments. */
  get digest(): Buffer {
    this.#digest ??= this.isLarge ? sumOf(this.segments) : digestOfList(this.segments);
    return this.#digest;
  }

  /** True if tags consist of a sum and a hash instead of the list and the bits. */
  get isLarge(): boolean {
    return this.size > maxListed;
  }
}

/** One byte for the outcome of each flag, and the parts of these bytes that belong to each segment. */
export type OutcomePositions = { all: Uint8Array; ofSegments: readonly Uint8Array[] };

function createOutcomePositions({ segments, size }: FlagKeys): OutcomePositions {
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

/** The keys of one segment. */
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

/** The text of one flag around its place: a text of fixed length that depends on the outcome. */
export type TemplateShape = {
  beforeKey: string;
  afterKey: string;
  /** The text of the place before anything was written there. */
  position: string;
  afterPosition: string;
};

/** ASCII text of all flags, separated by commas, and the offset of each place in it. */
export type Template = { bytes: Buffer; positions: Int32Array };

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

/** The text of all flags between a beginning and an end, as new bytes with `spareBytes` after it. */
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

/** An environment without flags has one empty segment. */
function filled(segments: readonly SegmentKeys[]): readonly SegmentKeys[] {
  return segments.filter(({ keys }) => keys.length > 0);
}

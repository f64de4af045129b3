import { hash } from "node:crypto";
import { type FlagKeys, joinTemplates, type TemplateShape } from "./flag-keys.ts";
import { shortHash } from "./short-hash.ts";

/** The values of all flags for somebody, ready to be sent. Equal values are one such object. */
export type FlagValues = {
  /**
   * `{"flags":{…}}`, in the order of the keys. It is ASCII, so that its characters are its bytes and
   * Node sends it together with the headers, in one piece.
   */
  readonly body: string;
  /**
   * Names the values: the same values of the same flags have the same tag on every edge, whatever
   * rules they come from, so that a client may poll now here, now there. With its quotes, as it stands
   * in the header `ETag` and as the id of events.
   */
  readonly etag: string;
};

/**
 * Turns outcomes, one byte a flag, into a tag and a body.
 *
 * A value takes five characters, `false` or a space and `true`, so that the body's length and each
 * value's place in it never change. The body of the last answer is kept as bytes; for the next one
 * only the values that differ are written over, and the bytes are copied out. With a new user in every
 * request that is what an answer costs, whatever the number of flags that are the same for both.
 */
export type ValuesWriter = {
  /** Takes the numbers of the outcomes, in the order of the keys. They are read at once and not kept. */
  tag(outcomeNumbers: Uint8Array): string;
  /** The body that the last tag names. */
  body(): string;
};

const writers = new WeakMap<FlagKeys, ValuesWriter>();

/** The writer for flags with these keys. It does not depend on their rules. */
export function valuesWriterOf(keys: FlagKeys): ValuesWriter {
  let writer = writers.get(keys);
  if (writer === undefined) {
    writer = createValuesWriter(keys);
    writers.set(keys, writer);
  }
  return writer;
}

function createValuesWriter(keys: FlagKeys): ValuesWriter {
  const bits = Buffer.alloc((keys.size + 7) >> 3);
  const tagOf = createTags(keys);
  let writeBody: (() => string) | undefined;
  return {
    tag(outcomeNumbers) {
      packValues(outcomeNumbers, bits);
      return tagOf(bits);
    },
    body() {
      writeBody ??= createBodies(keys, bits);
      return writeBody();
    },
  };
}

/** Bit `i % 8` of byte `i / 8` becomes the value of flag `i`: the outcomes with odd numbers are on. */
function packValues(outcomeNumbers: Uint8Array, bits: Buffer): void {
  let flag = 0;
  for (let byte = 0; byte < bits.length; byte += 1) {
    let packed = 0;
    for (let bit = 0; bit < 8; bit += 1, flag += 1)
      packed |= ((outcomeNumbers[flag] ?? 0) & 1) << bit;
    bits[byte] = packed;
  }
}

const shape: TemplateShape = { beforeKey: "", afterKey: ":", position: "false", afterPosition: "" };

/** Returns a function that writes the body with the values that the bits have at that time. */
function createBodies(keys: FlagKeys, bits: Buffer): () => string {
  const { bytes, positions } = joinTemplates(keys, shape, { begin: '{"flags":{', end: "}}" });
  const written = Buffer.alloc(bits.length);
  return () => {
    for (let byte = 0; byte < written.length; byte += 1) {
      const now = bits[byte] as number;
      let differing = now ^ (written[byte] as number);
      while (differing !== 0) {
        const lowest = 31 - Math.clz32(differing & -differing);
        const position = positions[byte * 8 + lowest] as number;
        if (((now >> lowest) & 1) === 1) writeTrue(bytes, position);
        else writeFalse(bytes, position);
        differing &= differing - 1;
      }
      written[byte] = now;
    }
    return bytes.toString("latin1");
  };
}

/** Letter by letter: a call of `Buffer.write` costs more than five bytes do. */
function writeTrue(bytes: Buffer, position: number): void {
  bytes[position] = 0x20;
  bytes[position + 1] = 0x74;
  bytes[position + 2] = 0x72;
  bytes[position + 3] = 0x75;
  bytes[position + 4] = 0x65;
}

function writeFalse(bytes: Buffer, position: number): void {
  bytes[position] = 0x66;
  bytes[position + 1] = 0x61;
  bytes[position + 2] = 0x6c;
  bytes[position + 3] = 0x73;
  bytes[position + 4] = 0x65;
}

/** A tag says which flags there are, as a hash, and then their values: bit by bit, or as another hash. */
function createTags(keys: FlagKeys): (bits: Buffer) => string {
  const prefix = `"${shortHash(keys.digest.toString("base64url"))}.`;
  return (bits) => {
    const text = keys.isLarge
      ? shortHash(hash("sha256", bits, "base64url"))
      : bits.toString("base64url");
    return `${prefix}${text}"`;
  };
}

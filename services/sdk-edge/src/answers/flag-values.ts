import { hash } from "node:crypto";
import { shortHash } from "./digests.ts";
import { type FlagKeys, joinTemplates, type TemplateShape } from "./flag-keys.ts";

/** The values of all flags for one context, ready to be sent. */
export type FlagValues = {
  /**
   * `{"flags":{…}}`, in the order of the keys. It is ASCII, so that its length in characters is its length in bytes,
   * and Node.js can send it in one piece with the headers.
   */
  readonly body: string;
  /**
   * Identifies the values. Equal values of the same flags have the same tag on every edge, regardless of the rules, so
   * that a client can poll different edges. The quotes are part of it, as in the header `ETag` and in the id of events.
   */
  readonly etag: string;
};

/**
 * Converts outcomes, one byte per flag, into a tag and a body.
 *
 * Each value takes five characters: `false`, or a space and `true`. So the body's length and the position of each value
 * never change. The bytes of the last body are kept. The next one overwrites only the values that differ and copies the
 * bytes out. A request with another context costs that copy and the differing values.
 */
type ValuesWriter = {
  /**
   * Returns the tag for the outcomes, given by code in the order of the keys. They are read immediately and not kept.
   */
  tag(outcomeCodes: Uint8Array): string;
  /** Returns the body that the last tag identifies. */
  body(): string;
};

const writers = new WeakMap<FlagKeys, ValuesWriter>();

/** Returns the writer for flags with these keys. It does not depend on their rules. */
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
    tag(outcomeCodes) {
      packValues(outcomeCodes, bits);
      return tagOf(bits);
    },
    body() {
      writeBody ??= createBodies(keys, bits);
      return writeBody();
    },
  };
}

/** Sets bit `i % 8` of byte `i / 8` to the value of flag `i`. Odd outcome codes mean the value true. */
function packValues(outcomeCodes: Uint8Array, bits: Buffer): void {
  let flag = 0;
  for (let byte = 0; byte < bits.length; byte += 1) {
    let packed = 0;
    for (let bit = 0; bit < 8; bit += 1, flag += 1)
      packed |= ((outcomeCodes[flag] ?? 0) & 1) << bit;
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

/** Writes byte by byte, because a call of `Buffer.write` costs more than five bytes do. */
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

/**
 * Returns a function that makes tags. A tag is a hash of the keys, followed by the values as bits or as another hash.
 */
function createTags(keys: FlagKeys): (bits: Buffer) => string {
  const prefix = `"${shortHash(keys.digest.toString("base64url"))}.`;
  return (bits) => {
    const text = keys.isLarge
      ? shortHash(hash("sha256", bits, "base64url"))
      : bits.toString("base64url");
    return `${prefix}${text}"`;
  };
}

import { createHash, hash } from "node:crypto";
import { asciiJson } from "./ascii-json.ts";
import { keptAnswers } from "./kept-answers.ts";
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
 * Turns outcomes, one byte a flag, into what is sent.
 *
 * A value takes five characters, `false` or a space and `true`, so that the body's length and each
 * value's place in it never change. The body of the last answer is kept as bytes; for the next one
 * only the values that differ are written over, and the bytes are copied out. With a new user in every
 * request that is what an answer costs, whatever the number of flags that are the same for both.
 *
 * Where few users' values differ, the same answers come again and again: the first ones are kept. Where
 * no two are the same, looking for them is given up, but for a look now and then.
 */
export type ValuesWriter = {
  /** Takes the numbers of the outcomes, in the order of the keys. They are read at once and not kept. */
  write(outcomeNumbers: Uint8Array): FlagValues;
};

/** More than are kept of small answers: whatever comes again has come by then. */
const missesToGiveUp = 1_024;
const looksOnceIn = 64;

export function createValuesWriter(keys: readonly string[]): ValuesWriter {
  const { bytes, places } = template(keys);
  const bits = Buffer.alloc((keys.length + 7) >> 3);
  const written = Buffer.alloc(bits.length);
  const tagOf = createTags(keys);
  const kept = keptAnswers.open<FlagValues>();
  let missesInARow = 0;

  function findKept(etag: string): FlagValues | undefined {
    if (missesInARow > missesToGiveUp && missesInARow % looksOnceIn !== 0) {
      missesInARow += 1;
      return undefined;
    }
    const known = kept.get(etag);
    missesInARow = known === undefined ? missesInARow + 1 : 0;
    return known;
  }

  function writeOver(): void {
    for (let byte = 0; byte < written.length; byte += 1) {
      const now = bits[byte] as number;
      let differing = now ^ (written[byte] as number);
      while (differing !== 0) {
        const lowest = 31 - Math.clz32(differing & -differing);
        const place = places[byte * 8 + lowest] as number;
        if (((now >> lowest) & 1) === 1) writeTrue(bytes, place);
        else writeFalse(bytes, place);
        differing &= differing - 1;
      }
      written[byte] = now;
    }
  }

  return {
    write(outcomeNumbers) {
      packValues(outcomeNumbers, bits);
      const etag = tagOf(bits);
      const known = findKept(etag);
      if (known !== undefined) return known;
      writeOver();
      const values: FlagValues = { body: bytes.toString("latin1"), etag };
      kept.keep(etag, values, values.body.length);
      return values;
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

/** The body with every value false, and where each value stands in it. */
function template(keys: readonly string[]): { bytes: Buffer; places: Int32Array } {
  const places = new Int32Array(keys.length);
  const parts: string[] = [];
  let length = '{"flags":{'.length;
  keys.forEach((key, index) => {
    const part = `${index === 0 ? "" : ","}${asciiJson(key)}:false`;
    parts.push(part);
    length += part.length;
    places[index] = length - "false".length;
  });
  return { bytes: Buffer.from(`{"flags":{${parts.join("")}}}`, "latin1"), places };
}

/** Letter by letter: a call of `Buffer.write` costs more than five bytes do. */
function writeTrue(bytes: Buffer, place: number): void {
  bytes[place] = 0x20;
  bytes[place + 1] = 0x74;
  bytes[place + 2] = 0x72;
  bytes[place + 3] = 0x75;
  bytes[place + 4] = 0x65;
}

function writeFalse(bytes: Buffer, place: number): void {
  bytes[place] = 0x66;
  bytes[place + 1] = 0x61;
  bytes[place + 2] = 0x6c;
  bytes[place + 3] = 0x73;
  bytes[place + 4] = 0x65;
}

/** Longer tags than these 171 characters would burden every request; the bits are hashed instead. */
const longestPlainBytes = 128;

/** A tag says which flags there are, as a hash that is made once, and then their values bit by bit. */
function createTags(keys: readonly string[]): (bits: Buffer) => string {
  const keysHash = createHash("sha256").update(JSON.stringify(keys)).digest("base64url");
  const prefix = `"${shortHash(keysHash)}.`;
  const plain = keys.length <= 8 * longestPlainBytes;
  return (bits) => {
    const text = plain ? bits.toString("base64url") : shortHash(hash("sha256", bits, "base64url"));
    return `${prefix}${text}"`;
  };
}

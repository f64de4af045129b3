import { wordAt } from "./murmur3.ts";
import { utf8 } from "./utf8.ts";

/**
 * SipHash-2-4 with a key of 16 bytes and a result of 64 bits (Aumasson and Bernstein, 2012). The halves of each word are
 * separate numbers, because integers of 64 bits are slow in JavaScript.
 */
export class SipHash {
  /** The halves of the last result, as unsigned integers. */
  high = 0;
  low = 0;
  readonly #key: readonly [number, number, number, number];

  constructor(key: Uint8Array) {
    if (key.length !== sipKeyBytes) throw new RangeError("a key of SipHash has 16 bytes");
    this.#key = [wordAt(key, 0), wordAt(key, 4), wordAt(key, 8), wordAt(key, 12)];
  }

  /** Hashes the UTF-8 bytes of a text into `high` and `low`. The code units of an ASCII text are these bytes. */
  hash(text: string): void {
    if (this.#hashUnits(text) >= 0x80) this.#hashUnits(utf8Text(text));
  }

  /** Hashes a text whose code units are bytes. Returns all code units combined by OR; the hash is invalid above 0xff. */
  #hashUnits(bytes: string): number {
    let units = 0;
    const [k0l, k0h, k1l, k1h] = this.#key;
    let v0l = k0l ^ 0x70736575;
    let v0h = k0h ^ 0x736f6d65;
    let v1l = k1l ^ 0x6e646f6d;
    let v1h = k1h ^ 0x646f7261;
    let v2l = k0l ^ 0x6e657261;
    let v2h = k0h ^ 0x6c796765;
    let v3l = k1l ^ 0x79746573;
    let v3h = k1h ^ 0x74656462;
    const lastBlock = bytes.length & ~7;
    // The last pass has no block. It finishes the hash with four rounds.
    for (let at = 0; at <= lastBlock + 8; at += 8) {
      const isBlock = at <= lastBlock;
      let low = 0;
      let high = 0;
      if (isBlock) {
        for (let i = Math.min(at + 8, bytes.length) - 1; i >= at; i--) {
          const unit = bytes.charCodeAt(i);
          units |= unit;
          high = (high << 8) | (low >>> 24);
          low = (low << 8) | unit;
        }
        if (at === lastBlock) high |= bytes.length << 24;
      } else v2l ^= 0xff;
      v3l ^= low;
      v3h ^= high;
      for (let round = isBlock ? 2 : 4; round > 0; round -= 1) {
        let sum = (v0l + v1l) | 0;
        v0h = (v0h + v1h + carry(v0l, v1l, sum)) | 0;
        v0l = sum;
        let turned = (v1l << 13) | (v1h >>> 19);
        v1h = ((v1h << 13) | (v1l >>> 19)) ^ v0h;
        v1l = turned ^ v0l;
        turned = v0l;
        v0l = v0h;
        v0h = turned;

        sum = (v2l + v3l) | 0;
        v2h = (v2h + v3h + carry(v2l, v3l, sum)) | 0;
        v2l = sum;
        turned = (v3l << 16) | (v3h >>> 16);
        v3h = ((v3h << 16) | (v3l >>> 16)) ^ v2h;
        v3l = turned ^ v2l;

        sum = (v0l + v3l) | 0;
        v0h = (v0h + v3h + carry(v0l, v3l, sum)) | 0;
        v0l = sum;
        turned = (v3l << 21) | (v3h >>> 11);
        v3h = ((v3h << 21) | (v3l >>> 11)) ^ v0h;
        v3l = turned ^ v0l;

        sum = (v2l + v1l) | 0;
        v2h = (v2h + v1h + carry(v2l, v1l, sum)) | 0;
        v2l = sum;
        turned = (v1l << 17) | (v1h >>> 15);
        v1h = ((v1h << 17) | (v1l >>> 15)) ^ v2h;
        v1l = turned ^ v2l;
        turned = v2l;
        v2l = v2h;
        v2h = turned;
      }
      v0l ^= low;
      v0h ^= high;
    }
    this.low = (v0l ^ v1l ^ v2l ^ v3l) >>> 0;
    this.high = (v0h ^ v1h ^ v2h ^ v3h) >>> 0;
    return units;
  }
}

/** Size of a key in bytes. */
export const sipKeyBytes = 16;

/** Returns the carry of an addition. A comparison would be a branch, and the hash would take twice as long. */
function carry(one: number, other: number, sum: number): number {
  return ((one & other) | ((one | other) & ~sum)) >>> 31;
}

/** Returns a text whose code units are the UTF-8 bytes of another one. */
function utf8Text(text: string): string {
  let bytes = "";
  for (const byte of utf8(text)) bytes += String.fromCharCode(byte);
  return bytes;
}

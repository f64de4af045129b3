import { createHash } from "node:crypto";
import { maxChunkBytes, maxListEntries } from "@halyard/contracts";
import { fingerprintBytes } from "@halyard/evaluation";

/**
 * Divides the fingerprints of a list into chunks. There are 2^b chunks, and a chunk has the fingerprints whose leading b
 * bits are its index, in ascending order. So an added entry changes one chunk. An empty list has no chunks.
 */
export type Chunk = { sha256: string; bytes: Buffer };

/** The contract of the snapshot allows 2^10 chunks. Only fingerprints that were made to begin alike need more. */
const maxBits = 10;

/**
 * Fingerprints as they are computed, in any order, with repetitions: at most `maxListEntries`. Their memory is reserved at
 * once and becomes resident as it is used. A list that grew would be copied, and need twice the memory for a while.
 */
export class FingerprintList {
  readonly #words = new Uint32Array(2 * maxListEntries);
  #length = 0;

  /** Adds a fingerprint of two unsigned halves. */
  add(high: number, low: number): void {
    // All supported processors store the lower half of an integer first.
    this.#words[this.#length] = low;
    this.#words[this.#length + 1] = high;
    this.#length += 2;
  }

  /** Returns the fingerprints in ascending order, each once, as big-endian bytes. The list must not be used afterwards. */
  sorted(): Buffer {
    new BigUint64Array(this.#words.buffer, 0, this.#length / 2).sort();
    const words = this.#words;
    let length = 0;
    // The words are compared, because each access to a 64-bit integer would create an object.
    for (let at = 0; at < this.#length; at += 2) {
      const isRepeated =
        length > 0 && words[at] === words[length - 2] && words[at + 1] === words[length - 1];
      if (isRepeated) continue;
      words.copyWithin(length, at, at + 2);
      length += 2;
    }
    return Buffer.from(words.buffer, 0, length * words.BYTES_PER_ELEMENT).swap64();
  }
}

/**
 * Divides sorted fingerprints into as few chunks as possible. Returns undefined if too many of them begin alike. The
 * chunks are parts of the given bytes.
 */
export function divide(sorted: Buffer): Buffer[] | undefined {
  if (sorted.length === 0) return [];
  for (let bits = 0; bits <= maxBits; bits += 1) {
    const chunks = divideByBits(sorted, bits);
    if (chunks.every(fits)) return chunks;
  }
  return undefined;
}

function divideByBits(sorted: Buffer, bits: number): Buffer[] {
  const bounds = Array.from({ length: 2 ** bits + 1 }, (_, index) =>
    firstAtLeast(sorted, index, bits),
  );
  return bounds.slice(1).map((to, index) => sorted.subarray(bounds[index], to));
}

/** Returns the offset of the first fingerprint whose leading bits are at least `index`. */
function firstAtLeast(sorted: Buffer, index: number, bits: number): number {
  let from = 0;
  let to = sorted.length / fingerprintBytes;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (indexOf(sorted, middle * fingerprintBytes, bits) < index) from = middle + 1;
    else to = middle;
  }
  return from * fingerprintBytes;
}

/** Returns the leading bits of the fingerprint at an offset. A shift by 32 would change nothing. */
function indexOf(bytes: Buffer, offset: number, bits: number): number {
  return bits === 0 ? 0 : bytes.readUInt32BE(offset) >>> (32 - bits);
}

const fits = ({ length }: { length: number }): boolean => length <= maxChunkBytes;

/** A fingerprint, as an unsigned integer, and whether the list has it after a change. */
export type FingerprintChange = readonly [fingerprint: bigint, isPresent: boolean];

/** Returns each of some fingerprints once, as unsigned integers. */
export function fingerprintsIn(bytes: Buffer): bigint[] {
  const found = new Set<bigint>();
  for (let at = 0; at < bytes.length; at += fingerprintBytes) found.add(bytes.readBigUInt64BE(at));
  return [...found];
}

/** Groups changes by the index of their chunk. Those of a chunk are in ascending order. */
export function changesByChunk(
  changes: readonly FingerprintChange[],
  chunkCount: number,
): Map<number, FingerprintChange[]> {
  const shift = BigInt(64 - Math.log2(chunkCount));
  const sorted = changes.toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Map.groupBy(sorted, ([fingerprint]) => Number(fingerprint >> shift));
}

/** Returns the fingerprints of a chunk after changes, which are in ascending order. */
export function changeChunk(chunk: Buffer, changes: readonly FingerprintChange[]): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (const [fingerprint, isPresent] of changes) {
    const at = offsetOf(chunk, fingerprint);
    const isKnown = at < chunk.length && chunk.readBigUInt64BE(at) === fingerprint;
    parts.push(chunk.subarray(from, at));
    if (isPresent) parts.push(bytesOf(fingerprint));
    from = isKnown ? at + fingerprintBytes : at;
  }
  return Buffer.concat([...parts, chunk.subarray(from)]);
}

/** Returns the offset of the first fingerprint that is not less than another. */
function offsetOf(chunk: Buffer, fingerprint: bigint): number {
  let from = 0;
  let to = chunk.length / fingerprintBytes;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (chunk.readBigUInt64BE(middle * fingerprintBytes) < fingerprint) from = middle + 1;
    else to = middle;
  }
  return from * fingerprintBytes;
}

function bytesOf(fingerprint: bigint): Buffer {
  const bytes = Buffer.alloc(fingerprintBytes);
  bytes.writeBigUInt64BE(fingerprint);
  return bytes;
}

/**
 * Returns whether a list keeps the number of its chunks, whose sizes in bytes are given. The number may be twice the
 * smallest possible, so that a list at the border is not divided again at each change.
 */
export function keepsDivision(sizes: readonly number[]): boolean {
  if (sizes.every((size) => size === 0)) return sizes.length === 0;
  if (sizes.some((size) => size > maxChunkBytes)) return false;
  const fourTogether = Array.from({ length: Math.floor(sizes.length / 4) }, (_, index) =>
    sizes.slice(index * 4, index * 4 + 4).reduce((sum, size) => sum + size, 0),
  );
  return fourTogether.length === 0 || fourTogether.some((sum) => sum > maxChunkBytes);
}

export const chunkOf = (bytes: Buffer): Chunk => ({
  sha256: createHash("sha256").update(bytes).digest("hex"),
  bytes,
});

import type { AudienceList } from "./flag-state.ts";
import { SipHash, sipKeyBytes } from "./sip-hash.ts";

/** Size of a fingerprint in bytes. */
export const fingerprintBytes = 8;

/**
 * Returns whether a text belongs to a list. With a probability of 1 in 18 million million, a text that does not belong to
 * a list of a million entries has the fingerprint of an entry.
 */
type HasMember = (text: string) => boolean;

/**
 * Compiles the fingerprints of a list. The chunks are those that `list.chunks` names, in their order; they are not
 * copied. A malformed list has no members.
 */
export function compileMembership(list: AudienceList, chunks: readonly Uint8Array[]): HasMember {
  const key = typeof list.key === "string" ? bytesOfHex(list.key) : new Uint8Array();
  const bits = Math.log2(chunks.length);
  if (key.length !== sipKeyBytes || !Number.isInteger(bits)) return () => false;
  const hash = new SipHash(key);
  const indexed = chunks.map((bytes) => new Chunk(bytes, bits));
  return (text) => {
    hash.hash(text);
    const position = bits === 0 ? 0 : hash.high >>> (32 - bits);
    return (indexed[position] as Chunk).has(hash.high, hash.low);
  };
}

/** Average number of fingerprints in a slot: half a line of a processor's cache. */
const slotSize = 4;

/** A slot with more fingerprints is divided before it is searched. Few are as long by chance. */
const longSlot = 16;

/**
 * The fingerprints with the same leading bits. Fingerprints are evenly distributed, so that the bits after these lead to
 * the slot of a fingerprint, which has few others. A search in a large list waits for memory once (a binary search takes
 * three times as long). The index takes half a byte for a fingerprint in chunks of the usual size. The first search builds it.
 */
class Chunk {
  readonly #view: DataView;
  readonly #bits: number;
  readonly #slotsPerValue: number;
  /** Position of the first fingerprint of each slot, and of the end. Undefined before the first search. */
  #starts: Starts | undefined;

  constructor({ buffer, byteOffset, byteLength }: Uint8Array, bits: number) {
    this.#view = new DataView(buffer, byteOffset, byteLength);
    this.#bits = bits;
    this.#slotsPerValue = Math.ceil(this.#count / slotSize) / 2 ** 32;
  }

  has(high: number, low: number): boolean {
    this.#starts ??= this.#index();
    const slot = this.#slotOf(high);
    let start = this.#starts[slot] as number;
    let end = this.#starts[slot + 1] as number;
    // Fingerprints that were made to begin alike can fill one slot.
    while (end - start > longSlot) {
      const middle = (start + end) >>> 1;
      if (this.#isAfter(middle, high, low)) end = middle;
      else start = middle;
    }
    for (let at = start; at < end; at++)
      if (this.#view.getUint32(at * fingerprintBytes + 4) === low && this.#highAt(at) === high)
        return true;
    return false;
  }

  /** Returns whether the fingerprint at a position is greater than this one. */
  #isAfter(position: number, high: number, low: number): boolean {
    const highThere = this.#highAt(position);
    if (highThere !== high) return highThere > high;
    return this.#view.getUint32(position * fingerprintBytes + 4) > low;
  }

  get #count(): number {
    return Math.floor(this.#view.byteLength / fingerprintBytes);
  }

  #highAt(position: number): number {
    return this.#view.getUint32(position * fingerprintBytes);
  }

  #slotOf(high: number): number {
    return Math.floor(((high << this.#bits) >>> 0) * this.#slotsPerValue);
  }

  #index(): Starts {
    const count = this.#count;
    const slots = this.#slotOf(0xffffffff) + 1;
    const starts: Starts =
      count < 2 ** 16 ? new Uint16Array(slots + 1) : new Uint32Array(slots + 1);
    let slot = 0;
    for (let at = 0; at < count; at++) {
      const next = this.#slotOf(this.#highAt(at));
      while (slot < next) starts[++slot] = at;
    }
    return starts.fill(count, slot + 1);
  }
}

type Starts = Uint16Array | Uint32Array;

/** Returns the bytes of hexadecimal digits. */
export function bytesOfHex(digits: string): Uint8Array {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

import { hash } from "node:crypto";

/** Number of 32-bit words in a sum, which has the 256 bits of one digest. */
const words = 8;

/**
 * A hash of a set of texts: the sum of their SHA-256 digests, word by word. Adding or removing a text costs one digest,
 * and the order of additions does not matter.
 */
export class DigestSum {
  readonly #sum = new Uint32Array(words);

  add(text: string): void {
    this.#addDigest(text, 1);
  }

  remove(text: string): void {
    this.#addDigest(text, -1);
  }

  addSum(other: DigestSum): void {
    for (let word = 0; word < words; word += 1)
      this.#sum[word] = (this.#sum[word] as number) + (other.#sum[word] as number);
  }

  copy(): DigestSum {
    const copy = new DigestSum();
    copy.addSum(this);
    return copy;
  }

  digest(): Buffer {
    const bytes = Buffer.alloc(4 * words);
    this.#sum.forEach((value, word) => {
      bytes.writeUInt32LE(value, 4 * word);
    });
    return bytes;
  }

  /** Values wrap around in a `Uint32Array`. */
  #addDigest(text: string, sign: 1 | -1): void {
    const digest = hash("sha256", text, "buffer");
    for (let word = 0; word < words; word += 1)
      this.#sum[word] = (this.#sum[word] as number) + sign * digest.readUInt32LE(4 * word);
  }
}

/** Length of a short hash in characters of base64url: 132 bits, so that two inputs practically never share a tag. */
const length = 22;

/** Returns the part of a SHA-256 in base64url that tags contain. */
export function shortHash(sha256: string): string {
  return sha256.slice(0, length);
}

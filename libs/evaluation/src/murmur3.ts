/**
 * MurmurHash3 (x86, 32-bit) by Austin Appleby, divided into steps. Authors of SDKs can compare their implementation
 * line by line, and `user-hash.ts` uses the steps to compute parts of a hash in advance.
 */
const c1 = 0xcc9e2d51 | 0;
const c2 = 0x1b873593;

/** Mixes a word of four bytes before it is added to the state. The last word can have fewer bytes. */
export function mixWord(word: number): number {
  const product = Math.imul(word, c1);
  return Math.imul((product << 15) | (product >>> 17), c2);
}

/** Returns the state after a mixed word of four bytes. */
export function addWord(state: number, mixedWord: number): number {
  const mixed = state ^ mixedWord;
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

/** Returns the hash from the state after all whole words, the mixed tail (0 if there is none) and the length. */
export function finish(state: number, mixedTail: number, lengthBytes: number): number {
  let hash = state ^ mixedTail ^ lengthBytes;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Reads a little-endian word of up to four bytes at `at`. */
export function wordAt(bytes: ArrayLike<number>, at: number): number {
  const end = Math.min(bytes.length, at + 4);
  let word = 0;
  for (let i = at; i < end; i++) word |= (bytes[i] ?? 0) << (8 * (i - at));
  return word;
}

/** Returns the hash of the bytes as an unsigned integer. */
export function murmur3(bytes: Uint8Array | readonly number[], seed = 0): number {
  const wholeBytes = bytes.length - (bytes.length % 4);
  let state = seed | 0;
  for (let at = 0; at < wholeBytes; at += 4) state = addWord(state, mixWord(wordAt(bytes, at)));
  return finish(state, mixWord(wordAt(bytes, wholeBytes)), bytes.length);
}

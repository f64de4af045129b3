import { bucketOfHash } from "./bucket.ts";
import { addWord, finish, mixWord, wordAt } from "./murmur3.ts";
import { utf8 } from "./utf8.ts";

/**
 * The bucket of one user in many flags. What is hashed is the flag's key, a colon and the user's id, so
 * of each hash one half is the flag's and one the user's. The flag's half is hashed when the flag is
 * compiled: the state after its whole words, and the bytes that are left over. The user's half is cut
 * into words and mixed once per context, for each number of bytes that can be left over before it (0 to
 * 3, made when the first flag needs it). A bucket then takes one step for each four bytes of the id.
 */
export class HashedUser {
  readonly #id: string;
  readonly #after: (AlignedUser | undefined)[] = [undefined, undefined, undefined, undefined];

  constructor(id: string) {
    this.#id = id;
  }

  /** The id as it follows so many left-over bytes. */
  after(leftOver: number): AlignedUser {
    return this.#after[leftOver] ?? this.#align(leftOver);
  }

  #align(leftOver: number): AlignedUser {
    const aligned = alignUser(utf8(this.#id), leftOver);
    this.#after[leftOver] = aligned;
    return aligned;
  }
}

export type AlignedUser = {
  readonly lengthBytes: number;
  /** The bytes that complete the left-over ones to a word, in their place. */
  readonly completion: number;
  /** Whether there are enough of them. */
  readonly completes: boolean;
  /** The mixed words after that one. */
  readonly words: Int32Array;
  /** The mixed bytes after those. */
  readonly rest: number;
};

function alignUser(bytes: readonly number[], leftOver: number): AlignedUser {
  const taken = leftOver === 0 ? 0 : 4 - leftOver;
  const completion = wordAt(bytes.slice(0, taken), 0) << (8 * leftOver);
  const lengthBytes = bytes.length;
  const words = new Int32Array(Math.max(0, (lengthBytes - taken) >> 2));
  let at = taken;
  for (let i = 0; i < words.length; i++, at += 4) words[i] = mixWord(wordAt(bytes, at));
  const rest = mixWord(wordAt(bytes, at));
  return { lengthBytes, completion, completes: lengthBytes >= taken, words, rest };
}

/** The flag's half of the hash. */
export type HashedFlag = {
  readonly state: number;
  /** The bytes after the last whole word, and how many. */
  readonly rest: number;
  readonly leftOver: number;
  readonly lengthBytes: number;
};

export function hashFlag(key: string): HashedFlag {
  const bytes = utf8(`${key}:`);
  const leftOver = bytes.length % 4;
  const wholeBytes = bytes.length - leftOver;
  let state = 0;
  for (let at = 0; at < wholeBytes; at += 4) state = addWord(state, mixWord(wordAt(bytes, at)));
  return { state, rest: wordAt(bytes, wholeBytes), leftOver, lengthBytes: bytes.length };
}

/** The same as `bucketOf` of the flag's key and the user's id. */
export function bucketIn(flag: HashedFlag, user: HashedUser): number {
  const { state, rest, leftOver, lengthBytes } = flag;
  return bucketOfHalves(state, rest, leftOver, lengthBytes, user.after(leftOver));
}

/** The same, for whoever keeps the parts of many flags' halves side by side. */
export function bucketOfHalves(
  flagState: number,
  flagRest: number,
  leftOver: number,
  flagLengthBytes: number,
  user: AlignedUser,
): number {
  const { completion, completes, words, rest } = user;
  const lengthBytes = flagLengthBytes + user.lengthBytes;
  let state = flagState;
  if (leftOver !== 0) {
    const mixed = mixWord(flagRest | completion);
    if (!completes) return bucketOfHash(finish(state, mixed, lengthBytes));
    state = addWord(state, mixed);
  }
  for (let i = 0; i < words.length; i++) state = addWord(state, words[i] as number);
  return bucketOfHash(finish(state, rest, lengthBytes));
}

import { hash } from "node:crypto";
import { shortHash } from "./digests.ts";
import type { TypedFlag } from "./environment-view.ts";
import type { FlagKeys } from "./flag-keys.ts";
import { digestBytes, type VariationText } from "./variation-texts.ts";

/**
 * Returns the tag of a body with one text for each flag: a hash of the keys, the texts, and the end of the body. Equal
 * ones have the same tag on every edge.
 */
export type FlagTags = (
  /** The number of the text of each flag. */
  numbers: Uint8Array,
  typed: TypedVariations,
  /** The part of the end that is not always the same, in ASCII. */
  end?: string,
) => string;

/** The typed flags of a view, and the variation of each for a context. */
export type TypedVariations = {
  readonly flags: readonly TypedFlag[];
  readonly variations: readonly VariationText[];
  /** The keys of unmet requirements, if the body contains them. */
  readonly unmet?: readonly string[];
};

/** Marks the numbers of typed flags. All numbers of texts are lower. */
const typedMark = 0x80;

export function createFlagTags(keys: FlagKeys, maxEndBytes: number): FlagTags {
  const numbersAt = keys.digest.length;
  const endAt = numbersAt + keys.size;
  let bytes = Buffer.alloc(endAt + maxEndBytes);
  bytes.set(keys.digest);
  return (numbers, { flags, variations, unmet = [] }, end = "") => {
    bytes.set(numbers, numbersAt);
    for (const { position } of flags)
      bytes[numbersAt + position] = (numbers[position] as number) | typedMark;
    let length = endAt + bytes.write(end, endAt, "latin1");
    const last = unmet.length === 0 ? "" : JSON.stringify(unmet);
    const needed = length + variations.length * digestBytes + last.length;
    if (needed > bytes.length) bytes = Buffer.concat([bytes], needed);
    for (const { digest } of variations) {
      bytes.set(digest, length);
      length += digestBytes;
    }
    if (last !== "") length += bytes.write(last, length, "latin1");
    return `"${shortHash(hash("sha256", bytes.subarray(0, length), "base64url"))}"`;
  };
}

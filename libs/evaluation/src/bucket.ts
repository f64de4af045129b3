import { murmur3 } from "./murmur3.ts";
import { utf8 } from "./utf8.ts";

/** Buckets are hundredths of a percent. */
export const buckets = 10_000;

/**
 * The bucket that a hash falls into. The number stands here once more because the engine divides by a
 * number that it sees in a fraction of the time that it takes to divide by a constant's value.
 */
export function bucketOfHash(hash: number): number {
  return hash % 10_000;
}

/** Where a user stands in a flag's rollout: 0 to 9999. Inside when below the percentage times 100. */
export function bucketOf(flagKey: string, userId: string): number {
  return bucketOfHash(murmur3(utf8(`${flagKey}:${userId}`)));
}

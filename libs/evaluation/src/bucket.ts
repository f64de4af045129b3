import { murmur3 } from "./murmur3.ts";
import { utf8 } from "./utf8.ts";

/** Number of buckets. A bucket is a hundredth of a percent. */
export const buckets = 10_000;

/**
 * Returns the bucket of a hash. The divisor is repeated as a literal because the engine divides by a literal in a
 * fraction of the time.
 */
export function bucketOfHash(hash: number): number {
  return hash % 10_000;
}

/** Returns the bucket of a user in a flag, 0 to 9999. The user is in the rollout if it is below percentage × 100. */
export function bucketOf(flagKey: string, userId: string): number {
  return bucketOfHash(murmur3(utf8(`${flagKey}:${userId}`)));
}

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

/**
 * Returns the bucket of a unit, such as a user's id, 0 to 9999. The seed is the flag's key or its `bucket_seed`. The
 * unit is in the rollout if its bucket is below the hundredths of the percentage.
 */
export function bucketOf(seed: string, unit: string): number {
  return bucketOfHash(murmur3(utf8(`${seed}:${unit}`)));
}

/** Returns the bucket of a unit in the splits of a flag. It is independent of the bucket for percentages. */
export function splitBucketOf(seed: string, unit: string): number {
  return bucketOfHash(murmur3(utf8(`${seed}:${unit}`), splitHashSeed));
}

/** Seed of murmur3 for splits. Percentages have the seed 0. */
export const splitHashSeed = 1;

/**
 * Returns a percentage in hundredths, which are buckets; undefined if it has more than two decimals. The product is
 * rounded, because 0.07 × 100 is not 7 in binary.
 */
export function hundredths(percentage: number): number | undefined {
  const rounded = Math.round(percentage * 100);
  return Math.abs(percentage * 100 - rounded) < 1e-9 ? rounded : undefined;
}

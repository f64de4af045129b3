import { isThorough } from "./thorough.ts";

/**
 * Seed of the tests with random cases: the same in each `npm test`, another one in each `npm run chaos`. A failure
 * prints it, and `TEST_SEED` repeats it.
 */
const fixedSeed = 20270131;
const randomSeed = () => Math.floor(Math.random() * 2 ** 31);

export const testSeed = Number(process.env.TEST_SEED ?? (isThorough ? randomSeed() : fixedSeed));

/** Returns a function with the same numbers from 0 to 1 for the same `testSeed` (the generator mulberry32). */
export function seededRandom(): () => number {
  let state = testSeed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

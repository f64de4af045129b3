/** True in `npm run chaos`, where some files test more cases than in `npm test`. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

/** Returns all cases of a test in `npm run chaos`, and at most this number, evenly spaced, in `npm test`. */
export function someOf<T>(cases: readonly T[], max: number): readonly T[] {
  const step = isThorough ? 1 : Math.ceil(cases.length / max);
  return cases.filter((_, index) => index % step === 0);
}

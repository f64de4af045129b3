/** True in `npm run chaos`: some files then test more cases than in `npm test`. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

/** The cases of a test: all of them in `npm run chaos`, and at most this number, evenly spaced, in `npm test`. */
export function someOf<T>(cases: readonly T[], most: number): readonly T[] {
  const step = isThorough ? 1 : Math.ceil(cases.length / most);
  return cases.filter((_, index) => index % step === 0);
}

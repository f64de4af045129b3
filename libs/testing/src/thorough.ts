/** True in `npm run chaos`: some files then test more cases than in `npm test`. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

/** The cases of a test: all of them in `npm run chaos`, the first ones in `npm test`. */
export function someOf<T>(cases: readonly T[], inEveryRun: number): readonly T[] {
  return isThorough ? cases : cases.slice(0, inEveryRun);
}

/** True in `npm run chaos`. Defined here because this library does not depend on the helpers of other tests. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

const fewerInEveryRun = 5;

/** Returns the number of runs of a property: all in `npm run chaos`, a fifth in `npm test`. */
export const runs = (all: number) => (isThorough ? all : all / fewerInEveryRun);

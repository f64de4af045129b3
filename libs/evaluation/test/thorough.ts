/** True in `npm run chaos`. This library does not depend on the helpers of other tests. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

const fewerInEveryRun = 5;

/** The number of runs of a property: all of them in `npm run chaos`, a fifth in `npm test`. */
export const runs = (all: number) => (isThorough ? all : all / fewerInEveryRun);

/** Set by `npm run chaos`, in which some files test more cases than in `npm test`. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

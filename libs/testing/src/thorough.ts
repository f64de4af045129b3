/** True in `npm run chaos`: some files then test more cases than in `npm test`. */
export const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

import type { Flag } from "../../src/flags/flag.ts";

/** The values of a boolean flag, which has no variations of its own. */
export const booleanFlag = {
  valueType: "boolean",
  variations: null,
  variationsVersion: null,
  variationsChangedAt: null,
} as const satisfies Partial<Flag>;

import type { Flag } from "../../src/flags/flag.ts";

/** The values of a boolean flag, which stores no variations. */
export const booleanFlag = {
  valueType: "boolean",
  variations: null,
  variationsVersion: null,
  variationsChangedAt: null,
} as const satisfies Partial<Flag>;

import type { Config } from "jest";
import { base } from "./jest.config.ts";

/** `npm run test:system`: whole systems, browsers, documents, packages and benchmarks. */
const system: Config = {
  ...base,
  // A test here starts up to a dozen processes, and several such tests run concurrently on as few as two cores. Time
  // limits that Halyard guarantees are asserted in the tests.
  testTimeout: 120_000,
  testMatch: ["<rootDir>/**/test/**/*.system.test.ts"],
  reporters: ["default", "<rootDir>/libs/testing/src/jest/missing-programs.ts"],
};

export default system;

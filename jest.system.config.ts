import type { Config } from "jest";
import { base } from "./jest.config.ts";

/** `npm run test:system`: whole systems, browsers, documents, packages and benchmarks. */
const system: Config = {
  ...base,
  testMatch: ["<rootDir>/**/test/**/*.system.test.ts"],
  reporters: ["default", "<rootDir>/libs/testing/src/jest/missing-programs.ts"],
};

export default system;

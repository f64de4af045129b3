import type { Config } from "jest";
import config from "./jest.config.ts";

// Workers inherit the environment.
process.env.HALYARD_THOROUGH_TESTS = "true";

/** `npm run chaos`: storms of faults, and the files that test more cases when `isThorough` is set. */
const chaos: Config = {
  ...config,
  testMatch: [
    "<rootDir>/e2e/chaos/*.test.ts",
    "<rootDir>/e2e/test/{bad-input,forged-keys,older-backup,read-your-writes}.test.ts",
    "<rootDir>/bench/test/quick.test.ts",
    "<rootDir>/libs/evaluation/test/fold-case.test.ts",
    "<rootDir>/services/scheduler/test/replace-race.test.ts",
  ],
};

export default chaos;

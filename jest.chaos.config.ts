import type { Config } from "jest";
import { base } from "./jest.config.ts";

// Workers inherit the environment.
process.env.HALYARD_THOROUGH_TESTS = "true";

/** `npm run chaos`: the chaos tests, and the files that test more cases with `HALYARD_THOROUGH_TESTS`. */
const chaos: Config = {
  ...base,
  testTimeout: 120_000,
  testMatch: [
    "<rootDir>/e2e/chaos/*.test.ts",
    "<rootDir>/e2e/test/{bad-input,forged-keys,read-your-writes,rolling-restart}.system.test.ts",
    "<rootDir>/bench/test/quick.system.test.ts",
    "<rootDir>/deploy/local/test/{restart-on-change,users-and-closed-directories}.system.test.ts",
    "<rootDir>/libs/evaluation/test/{evaluate.property,fold-case,malformed,plain-context,shared-work}.test.ts",
    "<rootDir>/libs/local-backends/test/users-and-closed-directories.system.test.ts",
    "<rootDir>/services/scheduler/test/replace-race.test.ts",
    "<rootDir>/services/sdk-edge/test/slots/slots.test.ts",
  ],
};

export default chaos;

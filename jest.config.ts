import type { Config } from "jest";

/** An external NATS server has one set of streams, so the files that share it run one after another. */
const externalNats = process.env.TEST_NATS_URL !== undefined;

/** Settings of all tiers. */
export const base: Config = {
  runtime: "<rootDir>/libs/testing/src/jest/runtime.ts",
  testEnvironment: "<rootDir>/libs/testing/src/jest/environment.ts",
  testSequencer: "<rootDir>/libs/testing/src/jest/sequencer.ts",
  globalSetup: "<rootDir>/libs/testing/src/jest/global-setup.ts",
  globalTeardown: "<rootDir>/libs/testing/src/jest/global-teardown.ts",
  // Node.js runs the sources as they are.
  transform: {},
  modulePathIgnorePatterns: [
    "<rootDir>/.halyard",
    "<rootDir>/.tsbuild",
    "<rootDir>/.cache",
    "<rootDir>/clients/[^/]+/dist",
    "<rootDir>/clients/evaluation/package.json",
  ],
  testTimeout: 60_000,
  // Most files wait half of the time, so four workers keep two cores busy.
  maxWorkers: externalNats ? 1 : 4,
  // Bounds the memory of a run. With a limit, Jest also starts new workers for each run of `--watch`, and these load
  // the changed sources.
  workerIdleMemoryLimit: "300MB",
};

/** `npm test`: every feature, with real PostgreSQL and NATS. */
const test: Config = {
  ...base,
  testMatch: ["<rootDir>/**/test/**/*.test.ts"],
  testPathIgnorePatterns: ["/node_modules/", "\\.system\\.test\\.ts$"],
};

export default test;

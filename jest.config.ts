import type { Config } from "jest";

/** An external NATS server has one set of streams, so the files that share it run one after another. */
const externalNats = process.env.TEST_NATS_URL !== undefined;

const config: Config = {
  runtime: "<rootDir>/libs/testing/src/jest/runtime.ts",
  testEnvironment: "<rootDir>/libs/testing/src/jest/environment.ts",
  transform: {},
  testMatch: ["<rootDir>/**/test/**/*.test.ts"],
  modulePathIgnorePatterns: [
    "<rootDir>/.halyard",
    "<rootDir>/.tsbuild",
    "<rootDir>/.cache",
    "<rootDir>/clients/[^/]+/dist",
    "<rootDir>/clients/evaluation/package.json",
  ],
  globalSetup: "<rootDir>/libs/testing/src/global-setup.ts",
  globalTeardown: "<rootDir>/libs/testing/src/global-teardown.ts",
  testSequencer: "<rootDir>/jest.sequencer.ts",
  testTimeout: 60_000,
  // Most files wait for their processes half of the time, so four files keep two cores busy.
  workerIdleMemoryLimit: "600MB",
  maxWorkers: externalNats ? 1 : 4,
};

export default config;

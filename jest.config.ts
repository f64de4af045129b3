import type { Config } from "jest";

/** An external NATS server has one set of streams, so the files that share it run one after another. */
const externalNats = process.env.TEST_NATS_URL !== undefined;

const config: Config = {
  testEnvironment: "<rootDir>/jest.environment.ts",
  // The packages of `clients` run from their sources. Without this condition, only their built files exist.
  testEnvironmentOptions: { customExportConditions: ["halyard-source", "node", "node-addons"] },
  extensionsToTreatAsEsm: [".ts"],
  testMatch: ["<rootDir>/**/test/**/*.test.ts"],
  modulePathIgnorePatterns: [
    "<rootDir>/.halyard",
    "<rootDir>/.tsbuild",
    "<rootDir>/.cache",
    "<rootDir>/clients/[^/]+/dist",
    "<rootDir>/clients/evaluation/package.json",
  ],
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      {
        jsc: { parser: { syntax: "typescript" }, target: "es2024" },
        module: { type: "es6" },
        sourceMaps: "inline",
      },
    ],
  },
  globalSetup: "<rootDir>/libs/testing/src/global-setup.ts",
  globalTeardown: "<rootDir>/libs/testing/src/global-teardown.ts",
  testSequencer: "<rootDir>/jest.sequencer.ts",
  testTimeout: 60_000,
  // Most files wait for their processes half of the time, so four files keep two cores busy.
  maxWorkers: externalNats ? 1 : 4,
};

export default config;

import type { Config } from "jest";

/** An external NATS server has one set of streams, so the files that share it run one after another. */
const externalNats = process.env.TEST_NATS_URL !== undefined;

const base: Config = {
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
  // Bounds the memory of a run.
  workerIdleMemoryLimit: "300MB",
};

/**
 * A test of whole systems starts up to a dozen processes, and several such tests run concurrently on as few as two cores.
 * Time limits that Halyard guarantees are asserted in the tests.
 */
const systemTimeout = 180_000;

const reporters = ["default", "<rootDir>/libs/testing/src/jest/missing-programs.ts"];

/** The three sets of tests. The variable `TEST_TIER` chooses one. */
export const tiers = {
  /** `npm test`: every feature, with real PostgreSQL and NATS. */
  test: {
    ...base,
    testMatch: ["<rootDir>/**/test/**/*.test.ts"],
    testPathIgnorePatterns: ["/node_modules/", "\\.system\\.test\\.ts$"],
  },
  /** `npm run test:system`: whole systems, browsers, documents, packages and benchmarks. */
  system: {
    ...base,
    testTimeout: systemTimeout,
    testMatch: ["<rootDir>/**/test/**/*.system.test.ts"],
    reporters,
  },
  /** `npm run chaos`: the chaos tests, and the files that test more cases with `HALYARD_THOROUGH_TESTS`. */
  chaos: {
    ...base,
    testTimeout: systemTimeout,
    testMatch: [
      "<rootDir>/e2e/chaos/*.test.ts",
      "<rootDir>/e2e/test/faults/changes.system.test.ts",
      "<rootDir>/e2e/test/{bad-input,forged-keys,openapi,read-your-writes,rolling-restart}.system.test.ts",
      "<rootDir>/bench/test/quick.system.test.ts",
      "<rootDir>/deploy/local/test/restart-on-change.system.test.ts",
      "<rootDir>/libs/evaluation/test/{evaluate.property,fold-case,malformed,plain-context,shared-work}.test.ts",
      "<rootDir>/services/management/test/change-requests/change-requests.property.test.ts",
      "<rootDir>/services/scheduler/test/replace-race.test.ts",
      "<rootDir>/services/sdk-edge/test/admission/slots.test.ts",
      "<rootDir>/services/sdk-edge/test/http/agreement.test.ts",
    ],
    reporters,
  },
} satisfies Record<string, Config>;

function isTier(name: string): name is keyof typeof tiers {
  return Object.hasOwn(tiers, name);
}

const { TEST_TIER: tier = "test" } = process.env;
if (!isTier(tier)) throw new Error(`TEST_TIER must be one of: ${Object.keys(tiers).join(", ")}`);
// Workers inherit the environment.
if (tier === "chaos") process.env.HALYARD_THOROUGH_TESTS = "true";

export default tiers[tier];

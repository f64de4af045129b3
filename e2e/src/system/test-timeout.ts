import { jest } from "@jest/globals";

/**
 * Timeout of each test. A test here starts up to a dozen processes, and several such tests run concurrently on as few
 * as two cores. Time limits that Halyard guarantees are asserted in the tests.
 */
const testTimeoutMs = 120_000;

jest.setTimeout(testTimeoutMs);

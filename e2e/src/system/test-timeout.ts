import { jest } from "@jest/globals";

/**
 * A test here starts up to a dozen processes, and a whole run has several such tests at once on as
 * few as two cores. What is promised in milliseconds or seconds is asserted where it is promised.
 */
const testTimeoutMs = 120_000;

jest.setTimeout(testTimeoutMs);

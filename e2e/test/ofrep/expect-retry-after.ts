import { expect } from "@jest/globals";
import type { Exchange } from "../../src/system/openfeature.ts";

/** Timers are a little early at times. */
const earlyMs = 5;

/** That a provider which was refused asked nothing for as long as it was told to. */
export function expectRetryAfterHonoured(
  rejected: Exchange | undefined,
  next: Exchange | undefined,
): void {
  const toldMs = rejected?.retryAfterMs ?? 0;
  expect(toldMs).toBeGreaterThan(0);
  const waitedMs = (next?.askedAtMs ?? 0) - (rejected?.answeredAtMs ?? 0);
  expect(waitedMs).toBeGreaterThanOrEqual(toldMs - earlyMs);
}

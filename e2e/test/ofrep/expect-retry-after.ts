import { expect } from "@jest/globals";
import type { Exchange } from "../../src/system/openfeature.ts";

/** Timers sometimes fire slightly early. */
const earlyMs = 5;

/** Checks that a rejected provider sent no request for the time in `Retry-After`. */
export function expectRetryAfterHonoured(
  rejected: Exchange | undefined,
  next: Exchange | undefined,
): void {
  const toldMs = rejected?.retryAfterMs ?? 0;
  expect(toldMs).toBeGreaterThan(0);
  const waitedMs = (next?.askedAtMs ?? 0) - (rejected?.answeredAtMs ?? 0);
  expect(waitedMs).toBeGreaterThanOrEqual(toldMs - earlyMs);
}

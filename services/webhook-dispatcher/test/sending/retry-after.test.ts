import { describe, expect, it } from "@jest/globals";
import { retryAfterMs } from "../../src/sending/send.ts";

const now = Date.parse("2026-11-20T18:00:00Z");

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["7", 7_000],
    ["86400", 86_400_000],
    ["Fri, 20 Nov 2026 18:00:30 GMT", 30_000],
    ["Sat, 21 Nov 2026 18:00:00 GMT", 86_400_000],
  ])("of %j is a delay of %i ms", (header, expected) => {
    expect(retryAfterMs(header, now)).toBe(expected);
  });

  it("of a past time is no delay", () => {
    expect(retryAfterMs("Fri, 20 Nov 2026 17:59:59 GMT", now)).toBe(0);
  });

  it.each([
    undefined,
    "",
    "-1",
    "1.5",
    "1e3",
    "0x10",
    "soon",
    "2026-11-20T18:00:30Z",
    "Fri, 20 Nov 2026 18:00:30 +0100",
    "Fri, 99 Nov 2026 18:00:30 GMT",
    "7, 8",
  ])("of %j is ignored", (header) => {
    expect(retryAfterMs(header, now)).toBeUndefined();
  });

  it("of a number that overflows is longer than any bound", () => {
    expect(retryAfterMs("9".repeat(400), now)).toBe(Number.POSITIVE_INFINITY);
  });
});

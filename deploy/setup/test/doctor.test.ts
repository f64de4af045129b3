import { describe, expect, it } from "@jest/globals";
import { judgeEnd } from "../src/doctor/check-certificates.ts";
import { judgeMigration } from "../src/doctor/check-postgres.ts";
import { clockFinding } from "../src/doctor/finding.ts";

const now = Date.parse("2030-01-01T00:00:00Z");

describe("given a certificate that ends", () => {
  it.each([
    ["in a year", "Jan  1 00:00:00 2031 GMT", "ok"],
    ["in three weeks", "Jan 21 23:59:59 2030 GMT", "warning"],
    ["today", "Jan  1 00:00:00 2030 GMT", "problem"],
  ])("%s", (_, validTo, status) => {
    expect(judgeEnd("flags.example.com", validTo, now)).toMatchObject({ status });
  });
});

describe("given a release whose newest migration is 0005", () => {
  it.each([
    ["0005_five", "ok"],
    ["0004_four", "problem"],
    [undefined, "problem"],
    ["0006_six", "warning"],
  ])("%s is applied", (applied, status) => {
    expect(judgeMigration("usage", applied, "0005_five")).toMatchObject({ status });
  });
});

describe("given another clock", () => {
  it.each([
    [0, "ok"],
    [-1_000, "ok"],
    [1_001, "problem"],
    [-86_400_000, "problem"],
  ])("that differs by %i ms", (offsetMs, status) => {
    expect(clockFinding("PostgreSQL", offsetMs)).toMatchObject({ status });
  });
});

import { describe, expect, it } from "@jest/globals";
import { type Evaluator, type Outcome, readSuite, runSuite } from "../src/index.ts";

const disabled: Outcome = { value: false, variation: "off", reason: "disabled" };
const cases = readSuite().files.flatMap(({ path, optional, cases }) =>
  cases.map(({ name, checks }) => ({ path, optional, name, checks })),
);

describe("given an evaluator that treats every flag as disabled", () => {
  it("counts every case as passed, failed or skipped", async () => {
    const { version, passed, failed, skipped } = await runSuite({ evaluate: () => disabled });
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(passed).toBeGreaterThan(0);
    expect(passed + failed + skipped).toBe(cases.length);
  });

  it("reports a failed case with the expected and the received result", async () => {
    const { failures } = await runSuite({ evaluate: () => disabled });
    expect(failures).toContainEqual({
      file: "cases/rollout.json",
      name: "no rules and 100 percent is static without a context",
      request: expect.stringContaining('"rollout_percentage":100'),
      expected: '{"value":true,"variation":"on","reason":"static"}',
      received: JSON.stringify(disabled),
    });
  });

  it("skips the cases of missing methods, and counts their requests", async () => {
    const { skipped, unsupported } = await runSuite({ evaluate: () => disabled });
    const isOnly = (operations: string[]) => (each: (typeof cases)[number]) =>
      each.checks.every(({ request }) => operations.includes(request.op));
    const missing = [
      ...["bucket", "split_bucket", "allocate_ranges"],
      ...["hash", "fingerprint", "validate_rules", "read_context"],
    ];
    expect(skipped).toBe(cases.filter(isOnly(missing)).length);
    expect(Object.keys(unsupported).toSorted()).toEqual(missing.toSorted());
  });

  it("omits the optional files if asked to", async () => {
    const { passed, failed, skipped } = await runSuite(
      { evaluate: () => disabled },
      { skipOptional: true },
    );
    const required = cases.filter(({ optional }) => optional === undefined);
    expect(passed + failed + skipped).toBe(required.length);
  });
});

describe("given an evaluator that throws", () => {
  it("fails the case with the message", async () => {
    const evaluate: Evaluator["evaluate"] = () => {
      throw new RangeError("no such operator");
    };
    const { failures, passed } = await runSuite({ evaluate });
    expect(passed).toBe(0);
    expect(new Set(failures.map(({ received }) => received))).toEqual(
      new Set(["error: RangeError: no such operator"]),
    );
  });
});

describe("given an evaluator whose rules are always valid", () => {
  it("fails the cases of rules that must be rejected", async () => {
    const { failures } = await runSuite({
      evaluate: () => disabled,
      validateRules: () => undefined,
    });
    const rejected = failures.filter(({ request }) => request.includes('"validate_rules"'));
    expect(rejected.length).toBeGreaterThan(0);
    expect(rejected.every(({ received }) => received === "null")).toBe(true);
  });
});

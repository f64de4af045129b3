import { type AttributeCondition, findRulesProblem, operatorNames } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ConditionInput, compileCheck, TargetingRulesInput } from "../src/index.ts";

/** Compares the schema of conditions in requests, which is part of the OpenAPI document, with the evaluator. */
const scalars = [
  ...["", "text", "DE, AT", "5", "-1.5e3", ".5", "5.", "0x10", " 5", "1e5", "Infinity", "a+"],
  ...["2027-01-31T09:00:00Z", "2027-01-31T09:00+01", "2027-02-30T09:00:00Z", "2027-01-31"],
  ...["1", "v1.2", "V1", "01.2.3", "1.2.3.4", "1.0.0-alpha.1", "1.0.0-", "1.0.0-01", "1.0.0-0a"],
  ...["1+build.01", "1.0.0-a+b-c", "1+", "1.0.0--", "v", "1..2"],
  ...[0, -1.5, 1e300, true, false],
];
const lists = [[], ["DE", 5, true], ["1.2.3"], [5]];

/** Texts that resemble numbers and versions, most of them invalid. */
const likeNumbers = fc.string({ unit: fc.constantFrom(..."0123.+-eE"), maxLength: 6 });
const likeVersions = fc.string({ unit: fc.constantFrom(..."0012v..-+a"), maxLength: 9 });

const isConditionInput = compileCheck(ConditionInput);
const isRules = compileCheck(TargetingRulesInput);

type Condition = Parameters<typeof findRulesProblem>[0][number]["conditions"][number];

function expectAgreement(conditions: readonly Condition[]): void {
  const differing = conditions.filter(
    (condition) =>
      isConditionInput(condition).ok !==
      (findRulesProblem([{ conditions: [condition] }]) === undefined),
  );
  const { seed } = fc.readConfigureGlobal();
  expect({ seed, differing }).toEqual({ seed, differing: [] });
}

const withEveryOperator = (values: readonly AttributeCondition["value"][]) =>
  operatorNames.flatMap((operator) =>
    values.map((value) => ({ attribute: "plan", operator, value })),
  );

describe("given the schema of conditions in requests", () => {
  it("accepts every operator", () => {
    // A text, a list, a number and a version.
    const value = "1";
    const accepted = operatorNames.filter(
      (operator) => isConditionInput({ attribute: "plan", operator, value }).ok,
    );
    expect(accepted).toEqual(operatorNames);
  });

  it("agrees with the evaluator about every operator with every kind of value", () => {
    expectAgreement(withEveryOperator([...scalars, ...lists]));
  });

  it("agrees with the evaluator about texts that resemble numbers or versions", () => {
    const texts = fc.sample(fc.oneof(likeNumbers, likeVersions), 2_000);
    // JSON Schema cannot bound the number in a text.
    const conditions = withEveryOperator(
      texts.filter((text) => Math.abs(Number(text)) !== Infinity),
    );
    expectAgreement(conditions.filter(({ operator }) => operator !== "matches_regex"));
  });

  it("accepts a pattern of at most 500 characters, and does not check its syntax", () => {
    const withPattern = (value: string) =>
      isConditionInput({ attribute: "plan", operator: "matches_regex", value }).ok;
    expect(withPattern("a".repeat(500))).toBe(true);
    expect(withPattern("a".repeat(501))).toBe(false);
    expect(withPattern("(")).toBe(true);
  });

  it("reports the value and the values that its operator accepts", () => {
    const rules = [{ conditions: [{ attribute: "plan", operator: "in", value: 5 }] }];
    expect(isRules(rules)).toEqual({
      ok: false,
      problem: expect.stringMatching(/^\/0\/conditions\/0\/value must be a list for this operator/),
    });
  });
});

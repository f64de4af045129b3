import type { OperatorName } from "@halyard/evaluation";
import { afterAll, describe, expect, it } from "@jest/globals";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

/** Tests which rollouts and rules are accepted, and the error message of each rejection. */

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const flags = flagsOf(management, project);

const texts = "must be a text, a number or a boolean for";
const list = "must be a list for";

/** For each operator, values in all forms that it accepts. */
const values: Record<OperatorName, unknown[]> = {
  equals: ["de", "", 5, true],
  not_equals: ["de", 5, false],
  contains: ["@example.com", 0.5],
  not_contains: ["x", true],
  starts_with: ["x"],
  ends_with: ["x"],
  matches_regex: ["^a.*b$", "(?i)\\bx\\b", "(?P<name>a)", "", 5],
  in: ["de, at", "", ["de", 5, true], []],
  not_in: ["de", [1]],
  gt: [5, "-1.5e3", "2027-01-31T09:00:00Z"],
  gte: [5, "5", "2027-01-31T09:00:00.123+02:00"],
  lt: [-0.5, ".5"],
  lte: [0, "5."],
  semver_eq: ["1.2.3", "v1", "1.2-rc.1", "1.0.0+build"],
  semver_gt: ["1.2"],
  semver_gte: ["99999999999999999999.0.0"],
  semver_lt: ["1.0.0-alpha.1"],
  semver_lte: ["1"],
};

const ruleWith = (condition: Record<string, unknown>) => [
  { conditions: [{ attribute: "plan", operator: "equals", value: "pro", ...condition }] },
];
const conditions = (count: number) =>
  Array.from({ length: count }, () => ({ attribute: "a", operator: "equals", value: "b" }));
const rules = (count: number) => Array.from({ length: count }, () => ({ conditions: [] }));
const at = "/targeting_rules/0/conditions/0";

it.each(Object.entries(values))(
  "accepts the values of %s, and returns them unchanged",
  async (operator, all) => {
    const targeting_rules = all.flatMap((value) => ruleWith({ operator, value }));
    const flag = await flags.createFlag({ targeting_rules });
    expect(flag.targeting_rules).toEqual(targeting_rules);
  },
);

describe("given an invalid rollout or invalid rules", () => {
  const wrong: [what: string, body: Record<string, unknown>, message: string][] = [
    ["rollout above 100", { rollout_percentage: 101 }, "/rollout_percentage must be <= 100"],
    ["rollout below 0", { rollout_percentage: -1 }, "/rollout_percentage must be >= 0"],
    [
      "a rollout with three decimals",
      { rollout_percentage: 1.555 },
      "/rollout_percentage must be a number from 0 to 100 with at most two decimals",
    ],
    ["rollout as text", { rollout_percentage: "50" }, "/rollout_percentage must be number"],
    ["rollout null", { rollout_percentage: null }, "/rollout_percentage must be number"],
    ["rules as an object", { targeting_rules: {} }, "/targeting_rules must be array"],
    ["101 rules", { targeting_rules: rules(101) }, "/targeting_rules must NOT have more than 100"],
    [
      "51 conditions",
      { targeting_rules: [{ conditions: [] }, { conditions: conditions(51) }] },
      "/targeting_rules/1/conditions must NOT have more than 50",
    ],
    [
      "a rule without conditions",
      { targeting_rules: [{ value: true }] },
      "/targeting_rules/0/conditions is required",
    ],
    [
      "a rule's own percentage above 100",
      { targeting_rules: [{ conditions: [], rollout_percentage: 101 }] },
      "/targeting_rules/0/rollout_percentage must be <= 100",
    ],
    [
      "a rule's value as text",
      { targeting_rules: [{ conditions: [], value: "true" }] },
      "/targeting_rules/0/value must be boolean",
    ],
    [
      "an unknown field of a rule",
      { targeting_rules: [{ conditions: [], percentage: 5 }] },
      "/targeting_rules/0/percentage is not a known field",
    ],
    [
      "an unknown field of a condition",
      { targeting_rules: ruleWith({ negate: true }) },
      `${at}/negate is not a known field`,
    ],
    [
      "a pattern of 501 characters",
      { targeting_rules: ruleWith({ operator: "matches_regex", value: "a".repeat(501) }) },
      `${at}/value must be a regular expression in RE2 syntax of at most 500 characters`,
    ],
    [
      "an unknown operator",
      { targeting_rules: ruleWith({ operator: "is" }) },
      `${at}/operator must be one of "equals", "not_equals", "contains"`,
    ],
    [
      "an operator in capitals",
      { targeting_rules: ruleWith({ operator: "EQUALS" }) },
      `${at}/operator must be one of`,
    ],
    [
      "an inherited name as operator",
      { targeting_rules: ruleWith({ operator: "constructor" }) },
      `${at}/operator must be one of`,
    ],
    [
      "an attribute without a name",
      { targeting_rules: ruleWith({ attribute: "" }) },
      `${at}/attribute must NOT have fewer than 1`,
    ],
    ["null as value", { targeting_rules: ruleWith({ value: null }) }, `${at}/value ${texts}`],
    [
      "an object as value",
      { targeting_rules: ruleWith({ operator: "in", value: { de: true } }) },
      `${at}/value ${list}`,
    ],
    [
      "a number as a version",
      { targeting_rules: ruleWith({ operator: "semver_eq", value: 2 }) },
      `${at}/value must be a version as a text`,
    ],
    [
      "null in a list",
      { targeting_rules: ruleWith({ operator: "in", value: ["de", null] }) },
      `${at}/value/1 must be string, number or boolean`,
    ],
    [
      "a list in a list",
      { targeting_rules: ruleWith({ operator: "in", value: [["de"]] }) },
      `${at}/value/0 must be string, number or boolean`,
    ],
    [
      "a value of 10,001 characters",
      { targeting_rules: ruleWith({ value: "a".repeat(10_001) }) },
      `${at}/value must NOT have more than 10000 characters`,
    ],
    [
      "a value that PostgreSQL cannot store",
      { targeting_rules: ruleWith({ value: "a\u0000" }) },
      `${at}/value must be text without NUL`,
    ],
    [
      "half of a surrogate pair",
      { targeting_rules: ruleWith({ attribute: "\ud800" }) },
      `${at}/attribute must be text without NUL`,
    ],
  ];

  const patterns: [what: string, pattern: string][] = [
    ["with an unclosed class", "[a-"],
    ["with a lookahead", "a(?=b)"],
    ["with a lookbehind", "(?<!a)b"],
    ["with a backreference", "(a)\\1"],
    ["with nothing to repeat", "*a"],
    ["with too many repetitions", "a{1001}"],
    ["that is too large with its repetitions expanded", "((a{100}){100}){100}"],
  ];
  wrong.push([
    "a pattern that matches only texts above the length limit",
    { targeting_rules: ruleWith({ operator: "matches_regex", value: "^a{400}$" }) },
    `${at}/value must be a regular expression that can match; it matches only texts of at least 400`,
  ]);
  const wrongPatterns = patterns.map(
    ([what, value]) =>
      [
        `a pattern ${what}`,
        { targeting_rules: ruleWith({ operator: "matches_regex", value }) },
        `${at}/value must be a regular expression in RE2 syntax; `,
      ] as (typeof wrong)[number],
  );

  it.each([...wrong, ...wrongPatterns])(
    "rejects %s in every kind of request",
    async (_, body, message) => {
      const flag = await flags.createFlag();
      const path = `/api/v1/flags/${flag.id}`;
      const before = await everythingWritten();
      const answers = [
        await flags.post({ key: "never", name: "Never", ...body }),
        await flags.patch(path, body),
        await management.call(path, { method: "PUT", key: project.serverKey, body }),
        await flags.patch(`${path}/environments/${project.otherEnvironmentId}`, body),
        await management.call(`${path}/environments/${project.otherEnvironmentId}`, {
          method: "PUT",
          key: project.serverKey,
          body,
        }),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(400);
        expect(answer.body.error.code).toBe("VALIDATION_001");
        expect(answer.body.error.message.startsWith(message)).toBe(true);
      }
      expect(await everythingWritten()).toEqual(before);
    },
  );

  it("rejects rules that are too large in their stored form", async () => {
    const flag = await flags.createFlag();
    const body = `{"targeting_rules":[{"conditions":[${Array.from(
      { length: 30 },
      () =>
        `{"attribute":"id","operator":"in","value":[${Array.from({ length: 1_000 }, () => "1e20").join(",")}]}`,
    ).join(",")}]}]}`;
    expect(body.length).toBeLessThan(200_000);
    const answer = await fetch(`${management.url}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${project.serverKey}`, "content-type": "application/json" },
      body,
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { message: expect.stringContaining("/targeting_rules must be at most") },
    });
  });

  it("names the first invalid condition", async () => {
    const targeting_rules = [
      ...ruleWith({}),
      {
        conditions: [
          { attribute: "a", operator: "equals", value: "b" },
          { attribute: "app", operator: "semver_gt", value: "latest" },
          { attribute: "age", operator: "gt", value: "old" },
        ],
      },
    ];
    const { body } = await flags.post({ key: "never", name: "Never", targeting_rules });
    expect(body.error.message).toMatch(/^\/targeting_rules\/1\/conditions\/1\/value must be/);
  });

  it("does not repeat the value in the message", async () => {
    for (const operator of ["gt", "semver_eq", "matches_regex"]) {
      const value = "(a secret";
      const { body } = await flags.post({
        key: "never",
        name: "Never",
        targeting_rules: ruleWith({ operator, value }),
      });
      expect(body.error.message).not.toContain("secret");
    }
  });
});

describe("given rules at their limits", () => {
  it.each([
    ["100 rules", rules(100)],
    ["50 conditions", [{ conditions: conditions(50) }]],
    ["a value of 10,000 characters", ruleWith({ value: "€".repeat(10_000) })],
    [
      "a pattern of 500 characters",
      ruleWith({ operator: "matches_regex", value: "a".repeat(500) }),
    ],
    ["a rule for everyone", [{ conditions: [], value: false, rollout_percentage: 0 }]],
    ["a name and an id", [{ id: "r1", name: "Staff", conditions: [] }]],
  ])("accepts %s", async (_what, targeting_rules) => {
    const flag = await flags.createFlag({ targeting_rules });
    const { body } = await management.call(`/api/v1/flags/${flag.id}`, { key: project.serverKey });
    expect(body.targeting_rules).toEqual(targeting_rules);
  });

  it("accepts attributes with the names of inherited object properties", async () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "id", "a.b", "ä b"];
    const targeting_rules = names.flatMap((attribute) => ruleWith({ attribute, value: attribute }));
    const flag = await flags.createFlag({ targeting_rules });
    const { body } = await management.call(`/api/v1/flags/${flag.id}`, { key: project.serverKey });
    expect(body.targeting_rules).toEqual(targeting_rules);
  });

  it("rejects `__proto__` as a field", async () => {
    const answer = await fetch(`${management.url}/api/v1/flags`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${project.serverKey}`,
        "content-type": "application/json",
      },
      body: '{"key":"never","name":"n","targeting_rules":[{"conditions":[{"attribute":"a","operator":"equals","value":"b","__proto__":{"operator":"in"}}]}]}',
    });
    expect(await answer.json()).toMatchObject({
      error: { status: 400, message: `${at}/__proto__ is not a known field` },
    });
  });
});

async function everythingWritten() {
  const [counts] = await management.sql`
    select (select count(*) from flags) as flags, (select sum(version) from flags) as versions,
      (select count(*) from history) as history, (select count(*) from changes) as changes,
      (select count(*) from outbox) as outbox`;
  return counts;
}

import { describe, expect, test } from "@jest/globals";
import { excludingFlags, needsWithout } from "../../../libs/evaluation/test/excluding-flags.ts";
import { parseRules, parseRulesEvent } from "../src/rules/parse-rules.ts";
import { RuleSet } from "../src/rules/rule-set.ts";
import { environmentId } from "./support/fake-edge.ts";

type Flags = Record<string, unknown>;

const unsupported = {
  enabled: true,
  rollout_percentage: 100,
  targeting_rules: [],
  needs: ["moon"],
  version: 1,
};
const on = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 1 };
const off = { ...on, enabled: false, version: 2 };

/** Members whose form this version does not read. */
const otherForms: object[] = [
  { serve: "x" },
  { bucket_by: [] },
  { targeting_rules: {} },
  { version: "x" },
];

function fullOf(flags: Flags) {
  const parsed = parseRules(JSON.stringify({ format: 2, environment_id: environmentId, flags }));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

function deltaOf(flags: Flags, removed: string[] = []) {
  const data = { format: 2, environment_id: environmentId, flags, removed };
  const parsed = parseRulesEvent(JSON.stringify(data));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

function ruleSetOf(flags: Flags): RuleSet {
  const ruleSet = new RuleSet();
  ruleSet.replace(fullOf(flags), '"1"', "stream");
  return ruleSet;
}

describe("parsing a rule set", () => {
  test.each<[string, string]>([
    ["no JSON", '{"flags":'],
    ["an array", "[]"],
    ["null", "null"],
    ["no environment", '{"format":2,"flags":{}}'],
    ["no format", `{"environment_id":"${environmentId}","flags":{}}`],
    ["another format", `{"format":3,"environment_id":"${environmentId}","flags":{}}`],
    ["no flags", `{"format":2,"environment_id":"${environmentId}"}`],
    ["a list of flags", `{"format":2,"environment_id":"${environmentId}","flags":[]}`],
    ["a flag that is null", `{"format":2,"environment_id":"${environmentId}","flags":{"a":null}}`],
    [
      "a flag without settings",
      `{"format":2,"environment_id":"${environmentId}","flags":{"a":{}}}`,
    ],
  ])("rejects %s", (_, text) => {
    expect(parseRules(text).ok).toBe(false);
    expect(parseRulesEvent(text).ok).toBe(false);
  });

  test("rejects all flags if one is incomplete", () => {
    const flags = { good: on, bad: { ...on, enabled: "yes" } };
    expect(parseRules(JSON.stringify({ format: 2, environment_id: environmentId, flags })).ok).toBe(
      false,
    );
  });

  test.each([
    ["full", 1],
    ["removed", "a"],
    ["removed", [1]],
  ])("rejects an event whose %s is %j", (name, value) => {
    const data = { format: 2, environment_id: environmentId, flags: {}, [name as string]: value };
    expect(parseRulesEvent(JSON.stringify(data)).ok).toBe(false);
  });

  test("ignores members that it does not know", () => {
    const data = {
      format: 2,
      environment_id: environmentId,
      flags: { a: { ...on, color: "red" } },
      more: 1,
    };
    expect(parseRules(JSON.stringify(data)).ok).toBe(true);
  });

  test.each<[string, object]>([
    ["a word of needs", { ...on, needs: ["buckets", "moon"] }],
    [
      "an operator",
      {
        ...on,
        targeting_rules: [{ conditions: [{ attribute: "a", operator: "near", value: "b" }] }],
      },
    ],
  ])("sets a flag aside for %s that it does not know, and keeps the others", (_, unknown) => {
    const { flags, unsupported } = fullOf({ good: on, unknown });
    expect([...flags.keys()]).toEqual(["good"]);
    expect([...unsupported.keys()]).toEqual(["unknown"]);
  });

  test.each(excludingFlags)("sets a flag aside that would include a user by $part", (excluding) => {
    const withheld = { ...excluding.flag, version: 1, needs: needsWithout(excluding) };
    const { flags, unsupported } = fullOf({ good: on, withheld });
    expect([...flags.keys()]).toEqual(["good"]);
    expect([...unsupported.keys()]).toEqual(["withheld"]);
  });

  test.each<[string, object]>([
    ["a feature", { needs: ["moon"] }],
    ["a type", { value_type: "date" }],
    ["an operator", { targeting_rules: [{ conditions: [{ operator: "near" }] }] }],
  ])("sets a flag with %s of a later release aside, whatever its other members are", (_, later) => {
    const flags = Object.fromEntries(
      otherForms.map((form, n) => [n, { ...on, ...form, ...later }]),
    );
    expect([...fullOf({ good: on, ...flags }).unsupported.keys()]).toEqual(Object.keys(flags));
  });

  test.each(otherForms)("rejects all flags if one that needs nothing has %j", (form) => {
    const flags = { good: on, bad: { ...on, ...form } };
    const text = JSON.stringify({ format: 2, environment_id: environmentId, flags });
    expect(parseRules(text).ok).toBe(false);
  });

  test("keeps a key that is the name of an object's prototype as an ordinary key", () => {
    const text = `{"format":2,"environment_id":"${environmentId}","flags":{"__proto__":${JSON.stringify(on)}}}`;
    const parsed = parseRules(text);
    expect(parsed.ok && [...parsed.value.flags.keys()]).toEqual(["__proto__"]);
    expect(({} as Flags).enabled).toBeUndefined();
  });
});

describe("the flags in memory", () => {
  test("are replaced as a whole, and only changed settings count as a change", () => {
    const ruleSet = ruleSetOf({ same: on, changed: on, removed: on });
    const next = { same: { ...on, version: 9 }, changed: off, added: on };
    expect(ruleSet.replace(fullOf(next), '"2"', "poll").sort()).toEqual([
      "added",
      "changed",
      "removed",
    ]);
    expect([...ruleSet.flags.keys()].sort()).toEqual(["added", "changed", "same"]);
  });

  test("keep what a delta does not contain", () => {
    const ruleSet = ruleSetOf({ a: on, b: on, c: on });
    const changed = ruleSet.apply(deltaOf({ a: off }, ["b", "unknown"]), '"2"', "stream");
    expect(changed).toEqual(["a", "b"]);
    expect([...ruleSet.flags.keys()]).toEqual(["a", "c"]);
    expect(ruleSet.etag).toBe('"2"');
  });

  test("notice a change of a rule at any depth", () => {
    const rule = (value: string) => ({
      ...on,
      targeting_rules: [{ conditions: [{ attribute: "plan", operator: "in", value: [value] }] }],
    });
    const ruleSet = ruleSetOf({ a: rule("pro"), b: rule("pro") });
    expect(ruleSet.apply(deltaOf({ a: rule("team"), b: rule("pro") }), '"2"', "stream")).toEqual([
      "a",
    ]);
  });

  test("keep the counts of a flag that is changed, removed and added again", () => {
    const ruleSet = ruleSetOf({ a: on });
    const evaluate = () => {
      const flag = ruleSet.flags.get("a");
      if (flag !== undefined) flag.on += 1;
    };
    evaluate();
    ruleSet.apply(deltaOf({ a: off }), '"2"', "stream");
    evaluate();
    ruleSet.apply(deltaOf({}, ["a"]), '"3"', "stream");
    ruleSet.apply(deltaOf({ a: on }), '"4"', "stream");
    evaluate();
    expect([...ruleSet.takeCounts()]).toEqual([["a", { on: 3, off: 0 }]]);
    expect([...ruleSet.takeCounts()]).toEqual([]);
  });
});

describe("a flag that this version cannot evaluate", () => {
  test("counts as removed, and returns when it needs nothing unknown", () => {
    const ruleSet = ruleSetOf({ a: on, b: on });
    expect(ruleSet.apply(deltaOf({ a: unsupported }), '"2"', "stream")).toEqual(["a"]);
    expect([...ruleSet.flags.keys()]).toEqual(["b"]);
    expect([...ruleSet.unsupported.keys()]).toEqual(["a"]);
    expect(ruleSet.apply(deltaOf({ a: on }), '"3"', "stream")).toEqual(["a"]);
    expect(ruleSet.unsupported.size).toBe(0);
  });

  test("is forgotten when it is removed, or when all flags are replaced", () => {
    const ruleSet = ruleSetOf({ a: unsupported });
    ruleSet.apply(deltaOf({}, ["a"]), '"2"', "stream");
    expect(ruleSet.unsupported.size).toBe(0);
    ruleSet.replace(fullOf({ a: unsupported }), '"3"', "stream");
    ruleSet.replace(fullOf({}), '"4"', "stream");
    expect(ruleSet.unsupported.size).toBe(0);
  });
});

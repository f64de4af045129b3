import {
  type Environment,
  type Evaluator,
  type Flag,
  readSuite,
  runCase,
} from "@halyard/conformance";
import { bytesOfHex, contextOf } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { parseRules } from "../src/rules/parse-rules.ts";
import { RuleSet } from "../src/rules/rule-set.ts";
import { environmentId } from "./support/fake-edge.ts";

/**
 * The cases in which a flag refers to audiences and other flags, evaluated from a rule set as the client receives it. The
 * evaluation itself passes the whole suite.
 */
const files = ["audiences", "audience-lists", "requirements", "needs", "values", "splits"];

const evaluator: Pick<Evaluator, "evaluate"> = {
  evaluate(given, context, environment) {
    const flag = ruleSetOf(given, environment).flags.get(given.key);
    if (flag === undefined) return null;
    const { evaluate, variationOf } = flag.compiled;
    const prepared = contextOf(context);
    const outcome = evaluate(prepared);
    if (variationOf === undefined) return outcome;
    const index = variationOf(prepared);
    const value = flag.variations.valueAt(index) as string | number | object | undefined;
    const { reason } = outcome;
    return { value: value ?? null, variation: flag.variations.keyOf(index), reason };
  },
};

function ruleSetOf(flag: Flag, { flags, audiences, chunks }: Environment): RuleSet {
  const entries = [flag, ...flags].map((each) => [each.key, { version: 1, ...each }] as const);
  const body = { format: 2, environment_id: environmentId, flags: Object.fromEntries(entries) };
  const parsed = parseRules(JSON.stringify({ ...body, audiences }));
  if (!parsed.ok) throw new Error(parsed.problem);
  const ruleSet = new RuleSet();
  ruleSet.replace(parsed.value, undefined, "poll");
  const bytes = Object.entries(chunks).map(([name, hex]) => [name, bytesOfHex(hex)] as const);
  ruleSet.addChunks(new Map(bytes));
  return ruleSet;
}

describe("a rule set in memory", () => {
  it.each(files)("passes the conformance cases of %s", async (name) => {
    const path = `cases/${name}.json`;
    const file = readSuite().files.find((each) => each.path === path);
    const results = (file?.cases ?? []).map((each) => runCase(evaluator as Evaluator, path, each));
    expect(results.length).toBeGreaterThan(0);
    expect((await Promise.all(results)).flat()).toEqual([]);
  });
});

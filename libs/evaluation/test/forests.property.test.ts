import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type Attributes,
  type CompiledFlag,
  compileAll,
  createContext,
  type Evaluation,
  type EvaluationContext,
  type Explanation,
  evaluateInSteps,
  explain,
  outcomesByCode,
  type Pass,
  type Requirement,
  type ResolvedState,
} from "../src/index.ts";
import { condition, flagWithRules, given } from "./flags.ts";
import { contexts } from "./random-flags.ts";
import { compileForest, type Forest, forests, projectOf } from "./random-forests.ts";
import {
  evaluateByReference,
  isFoundByReference,
  variationByReference,
} from "./reference-evaluator.ts";
import { runs } from "./thorough.ts";

const users = fc.array(contexts, { minLength: 2, maxLength: 3 });

/** Returns the outcome and the variation of each flag. Flags that are not found are off. */
function expectedOf(forest: Forest, attributes: Attributes): Evaluation[] {
  const project = projectOf(forest);
  return forest.flags.map((flag) => {
    const { variations } = flag;
    const indexOf = (key: string | null) => variations?.findIndex((each) => each.key === key);
    if (!isFoundByReference(flag, project)) {
      const outcome = { value: false, variation: "off", reason: "default" } as const;
      return { outcome, variation: indexOf(flag.off_variation ?? null) };
    }
    const outcome = evaluateByReference(flag, attributes, project);
    const key = variations && variationByReference(flag, attributes, project);
    return { outcome, variation: key === undefined ? undefined : indexOf(key) };
  });
}

/** Evaluates all flags in steps, like a reader that serves other requests in between. */
function* evaluateEach(
  flags: readonly CompiledFlag[],
  context: EvaluationContext,
): Generator<undefined, Evaluation[]> {
  const pass: Pass = new Map();
  const evaluations: Evaluation[] = [];
  for (const flag of flags) evaluations.push(yield* evaluateInSteps(flag, context, pass));
  return evaluations;
}

describe("given any flags that require each other and refer to audiences", () => {
  it("returns what the reference evaluator returns, for several users in turn", () => {
    fc.assert(
      fc.property(forests, users, (forest, several) => {
        const { compiled, references } = compileForest(forest);
        const project = projectOf(forest);
        for (const flag of forest.flags)
          expect(references.flags.has(flag.key)).toBe(isFoundByReference(flag, project));
        const prepared = several.map((attributes) => createContext(attributes));
        const expected = several.map((attributes) => expectedOf(forest, attributes));
        for (const [position, flag] of compiled.entries())
          for (const [user, context] of prepared.entries()) {
            const variation = flag.variationOf?.(context);
            const evaluation = { outcome: flag.evaluate(context), variation };
            expect(evaluation).toEqual(expected[user]?.[position]);
          }
      }),
      { numRuns: runs(500) },
    );
  });

  it("returns the same for many flags together", () => {
    fc.assert(
      fc.property(forests, users, (forest, several) => {
        const { compiled } = compileForest(forest);
        const evaluateAll = compileAll(compiled);
        const codes = new Uint8Array(compiled.length);
        for (const attributes of several) {
          evaluateAll(createContext(attributes), codes);
          expect([...codes].map((code) => outcomesByCode[code])).toEqual(
            expectedOf(forest, attributes).map(({ outcome }) => outcome),
          );
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it("returns the same in steps, with the steps of several users in between", () => {
    fc.assert(
      fc.property(forests, users, (forest, several) => {
        const { compiled } = compileForest(forest);
        const running = several.map((attributes) =>
          evaluateEach(compiled, createContext(attributes)),
        );
        const results: Evaluation[][] = [];
        while (results.filter((result) => result !== undefined).length < several.length)
          for (const [user, steps] of running.entries()) {
            const step = steps.next();
            if (step.done && results[user] === undefined) results[user] = step.value;
          }
        expect(results).toEqual(several.map((attributes) => expectedOf(forest, attributes)));
      }),
      { numRuns: runs(300) },
    );
  });

  it("explains the same outcome", () => {
    fc.assert(
      fc.property(forests, contexts, (forest, attributes) => {
        const { references } = compileForest(forest);
        const context = createContext(attributes);
        const expected = expectedOf(forest, attributes);
        for (const [position, flag] of forest.flags.entries())
          expectExplained(
            flag,
            explain(flag, context, references),
            expected[position] as Evaluation,
          );
      }),
      { numRuns: runs(200) },
    );
  });
});

function expectExplained(
  flag: ResolvedState,
  explanation: Explanation,
  { outcome, variation }: Evaluation,
): void {
  expect(explanation).toMatchObject(outcome);
  expect(explanation.served?.index).toBe(variation);
  for (const rule of explanation.rules.filter(({ reached }) => reached)) {
    expect(rule.matched).toBe(rule.conditions.every(({ held }) => held));
    expect(rule.conditions).toHaveLength(flag.targeting_rules[rule.index]?.conditions.length ?? -1);
  }
  const isHeldBack = explanation.requires?.some(({ held }) => !held) ?? false;
  expect(isHeldBack).toBe(outcome.reason === "prerequisite_failed");
  for (const { held, reason, because = [] } of explanation.requires ?? []) {
    expect(because.every((link) => !link.held)).toBe(true);
    expect(because.length > 0).toBe(reason === "prerequisite_failed");
    if (!held) expect(because.at(-1)?.reason).not.toBe("prerequisite_failed");
  }
}

describe("given ten levels of ten flags, each of which requires all flags of the level below", () => {
  const levels = 10;
  const keysOf = (level: number) => Array.from({ length: 10 }, (_, index) => `${level}-${index}`);
  const flags = Array.from({ length: levels }, (_, level) =>
    keysOf(level).map((key, index): ResolvedState => {
      const requires =
        level === 0 ? [] : keysOf(level - 1).map((flag) => ({ flag, is: isOf(index) }));
      const rule = { conditions: [condition("plan", "equals", "pro")] };
      return { ...flagWithRules(rule, { conditions: [], value: false }), key, requires };
    }),
  ).flat();
  const forest: Forest = { flags, audiences: new Map() };
  const { compiled, references } = compileForest(forest);
  const top = compiled.at(-1) as CompiledFlag;

  // Without the results that flags share, each of these would evaluate 10^9 flags.
  it.each(["pro", "free"])("evaluates each flag once, for the plan %s", (plan) => {
    const attributes = given({ plan });
    const [expected] = expectedOf(forest, attributes).slice(-1);
    expect(top.evaluate(createContext(attributes))).toEqual(expected?.outcome);
    const codes = new Uint8Array(compiled.length);
    compileAll(compiled)(createContext(attributes), codes);
    expect(outcomesByCode[codes.at(-1) ?? 0]).toEqual(expected?.outcome);
    expect(explain(top.state, createContext(attributes), references)).toMatchObject(
      expected?.outcome ?? {},
    );
  });

  it("takes a step for each requirement at most, and for each condition", () => {
    const steps = evaluateInSteps(top, createContext(given({ plan: "pro" })));
    let count = 0;
    while (steps.next().done !== true) count += 1;
    expect(count).toBeLessThanOrEqual(levels * 10 * (10 + 2));
  });

  function isOf(index: number): Requirement["is"] {
    return index % 2 === 0 ? "on" : ["on", "off"];
  }
});

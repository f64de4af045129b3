import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  bucketOf,
  compile,
  compileAll,
  contextOf,
  createContext,
  emptyContext,
  explain,
  findRulesProblem,
  outcomesByCode,
  type ResolvedState,
} from "../src/index.ts";
import { conditionValuePairs, contexts, flags, ids, namesOfId } from "./random-flags.ts";
import { bucket, evaluateByReference } from "./reference-evaluator.ts";
import { runs } from "./thorough.ts";

describe("given any flag and any context", () => {
  it("returns the same outcome as the reference evaluator", () => {
    fc.assert(
      fc.property(flags, contexts, (flag, attributes) => {
        const { evaluate } = compile(flag);
        const expected = evaluateByReference(flag, attributes);
        expect(evaluate(createContext(attributes))).toEqual(expected);
        // An empty id in an object counts as missing.
        if (attributes.get("id") !== "")
          expect(evaluate(contextOf(Object.fromEntries(attributes)))).toEqual(expected);
      }),
      { numRuns: runs(3_000) },
    );
  });

  it("returns the same outcome again, and in a context that other flags have used", () => {
    fc.assert(
      fc.property(fc.array(flags, { maxLength: 4 }), contexts, (several, attributes) => {
        const context = createContext(attributes);
        const compiled = several.map((flag) => compile(flag));
        const first = compiled.map((flag) => flag.evaluate(context));
        expect(compiled.map((flag) => flag.evaluate(context))).toEqual(first);
        expect(several.map((flag) => evaluateByReference(flag, attributes))).toEqual(first);
      }),
      { numRuns: runs(500) },
    );
  });

  it("returns the same outcomes for many flags together as for each flag", () => {
    fc.assert(
      fc.property(
        fc.array(flags, { maxLength: 6 }),
        fc.array(contexts, { minLength: 1, maxLength: 3 }),
        (several, users) => {
          // Some flags occur twice, so that they share conditions.
          const compiled = [...several, ...several.slice(0, 2)].map((flag) => compile(flag));
          const evaluateAll = compileAll(compiled);
          const numbers = new Uint8Array(compiled.length).fill(255);
          for (const attributes of users) {
            const context = createContext(attributes);
            evaluateAll(context, numbers);
            expect([...numbers].map((number) => outcomesByCode[number])).toEqual(
              compiled.map(({ evaluate }) => evaluate(context)),
            );
          }
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  it("sets a constant only if every context gets it", () => {
    fc.assert(
      fc.property(flags, contexts, (flag, attributes) => {
        const { constant, evaluate } = compile(flag);
        if (constant === undefined) return;
        expect(evaluate(createContext(attributes))).toBe(constant);
        expect(evaluate(emptyContext)).toBe(constant);
        expect(evaluateByReference(flag, attributes)).toEqual(constant);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it("explains the outcome by the conditions that determined it", () => {
    fc.assert(
      fc.property(flags, contexts, (flag, attributes) => {
        const context = createContext(attributes);
        const { rules, ...outcome } = explain(flag, context);
        expect(outcome).toEqual(compile(flag).evaluate(context));
        const reached = flag.enabled ? rules.filter((rule) => rule.reached) : [];
        const decisive = reached.findIndex((rule) => rule.matched);
        expect(decisive === -1 || decisive === reached.length - 1).toBe(true);
        for (const rule of reached) {
          expect(rule.matched).toBe(rule.conditions.every((condition) => condition.held));
          expect(rule.conditions).toHaveLength(
            flag.targeting_rules[rule.index]?.conditions.length ?? -1,
          );
        }
        const last = reached.at(-1);
        if (last?.matched === true) {
          const inside = outcome.reason === "split" ? { inside_percentage: outcome.value } : {};
          expect(last).toMatchObject(inside);
          expect("inside_percentage" in last).toBe(outcome.reason === "split");
        }
      }),
      { numRuns: runs(2_000) },
    );
  });

  it("can evaluate every condition of accepted rules", () => {
    fc.assert(
      fc.property(flags, contexts, (flag, attributes) => {
        const problem = findRulesProblem(flag.targeting_rules);
        const { rules } = explain({ ...flag, enabled: true }, createContext(attributes));
        const invalid = rules.some(({ conditions }) =>
          conditions.some(
            (condition) => "obstacle" in condition && condition.obstacle === "invalid_condition",
          ),
        );
        if (problem === undefined) expect(invalid).toBe(false);
      }),
      { numRuns: runs(2_000) },
    );
  });
});

describe("given one condition and one value of the attribute to which it refers", () => {
  it("holds if it holds in the reference evaluator", () => {
    fc.assert(
      fc.property(conditionValuePairs, ([condition, value]) => {
        const flag: ResolvedState = {
          key: "flag",
          enabled: true,
          rollout_percentage: 100,
          targeting_rules: [{ conditions: [condition] }],
        };
        const name = namesOfId.includes(condition.attribute) ? "id" : condition.attribute;
        const attributes = new Map([[name, value]]);
        expect(compile(flag).evaluate(createContext(attributes))).toEqual(
          evaluateByReference(flag, attributes),
        );
      }),
      { numRuns: runs(12_000) },
    );
  });
});

describe("given a percentage that is raised", () => {
  const rollout = (key: string, rollout_percentage: number): ResolvedState => ({
    key,
    enabled: true,
    rollout_percentage,
    targeting_rules: [],
  });

  it("excludes no user who was included", () => {
    const percentages = fc.uniqueArray(fc.integer({ min: 0, max: 100 }), { minLength: 2 });
    fc.assert(
      fc.property(fc.string(), ids, percentages, (key, id, steps) => {
        const context = createContext(new Map([["id", id]]));
        const inside = steps
          .toSorted((a, b) => a - b)
          .map((step) => compile(rollout(key, step)).evaluate(context).value);
        expect(inside).toEqual(inside.toSorted((a, b) => Number(a) - Number(b)));
      }),
      { numRuns: runs(1_000) },
    );
  });

  it("includes a user from the percentage above the user's bucket on, at any length of key and id", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (key, id) => {
        const position = bucketOf(key, id);
        expect(BigInt(position)).toBe(bucket(key, id));
        const context = createContext(new Map([["id", id]]));
        const whole = Math.floor(position / 100);
        expect(compile(rollout(key, whole)).evaluate(context).value).toBe(false);
        expect(compile(rollout(key, whole + 1)).evaluate(context).value).toBe(true);
      }),
      { numRuns: runs(2_000) },
    );
  });
});

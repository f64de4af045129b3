import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "@jest/globals";
import {
  type Audience,
  type CompiledFlag,
  compile,
  compileAudience,
  contextOf,
  createContext,
  type Evaluation,
  emptyContext,
  evaluateInSteps,
  explain,
  findMissing,
  noReferences,
  type References,
  type Requirement,
  type ResolvedState,
  referredKeys,
} from "../src/index.ts";
import { condition, flagWithRollout, flagWithRules, given, oneRuleFlag } from "./flags.ts";
import { chunksByReference } from "./reference-fingerprints.ts";

const isPro = condition("plan", "equals", "pro");
const pro = contextOf({ id: "user-1", plan: "pro" });
const free = contextOf({ id: "user-1", plan: "free" });
const proFlag: ResolvedState = { ...oneRuleFlag(isPro), key: "payments" };

function withFlags(...states: ResolvedState[]): References {
  return { ...noReferences, flags: new Map(states.map((state) => [state.key, compile(state)])) };
}

function withAudience(audience: Audience, chunks?: readonly Uint8Array[]): References {
  return { ...noReferences, audiences: new Map([["beta", compileAudience(audience, chunks)]]) };
}

function requiring(...requires: Requirement[]): ResolvedState {
  return { ...flagWithRollout("checkout", 100), requires };
}

function resultOf<T>(steps: Generator<undefined, T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

const failed = { value: false, variation: "off", reason: "prerequisite_failed" };

describe("given a flag that is compiled again with a changed audience", () => {
  it("keeps its compiled conditions of attributes", () => {
    const email = condition("email", "matches_regex", "^user-[0-9]{1,40}@");
    const flag = flagWithRules({ conditions: [email] }, { conditions: [{ audience: "beta" }] });
    const [before, after] = [isPro, condition("plan", "equals", "free")].map((match) =>
      compile(flag, withAudience({ match: [[match]] })),
    );
    expect(after?.plan.rules[0]?.conditions[0]).toBe(before?.plan.rules[0]?.conditions[0]);
    expect([before?.evaluate(free).value, after?.evaluate(free).value]).toEqual([false, true]);
  });
});

describe("the keys that a state refers to", () => {
  const state = {
    ...requiring({ flag: "payments", is: "on" }, { flag: "accounts", is: ["blue"] }),
    targeting_rules: [
      { conditions: [{ audience: "beta" }, isPro, { flag: "payments", is: "off" as const }] },
      { conditions: [{ audience: "beta" }, { audience: "staff" }] },
    ],
  };

  it("are those of its requirements and conditions, without duplicates", () => {
    expect(referredKeys(state)).toEqual({
      audiences: ["beta", "staff"],
      flags: ["payments", "accounts"],
    });
  });

  it("are missing if they are unknown, first the audiences", () => {
    const known = { audiences: new Set(["beta", "staff"]), flags: new Set(["payments"]) };
    expect(findMissing(state, known)).toBe("accounts");
    expect(findMissing(state, { ...known, audiences: new Set() })).toBe("beta");
    expect(findMissing(state, { ...known, flags: new Set(["payments", "accounts"]) })).toBe(
      undefined,
    );
  });

  it("are not missing while the flag is disabled", () => {
    expect(findMissing({ ...state, enabled: false }, noReferences)).toBeUndefined();
  });

  it.each<[string, object]>([
    ["requires that is no list", { requires: 5 }],
    ["a requirement that is null", { requires: [null] }],
    ["rules that are no list", { targeting_rules: {} }],
    ["a rule that is null", { targeting_rules: [null] }],
    ["conditions that are no list", { targeting_rules: [{ conditions: "beta" }] }],
    ["a condition that is null", { targeting_rules: [{ conditions: [null] }] }],
  ])("exclude %s", (_, members) => {
    const malformed = { ...flagWithRules(), ...members } as ResolvedState;
    expect(referredKeys(malformed)).toEqual({ audiences: [], flags: [] });
  });
});

describe("given a flag with a reference that is unknown or malformed", () => {
  it.each<[string, object]>([
    ["a required flag", { requires: [{ flag: "none", is: "off" }] }],
    [
      "a required flag with the name of a member",
      { requires: [{ flag: "constructor", is: "off" }] },
    ],
    ["a flag in a condition", { targeting_rules: [{ conditions: [{ flag: "none", is: "on" }] }] }],
    ["an audience", { targeting_rules: [{ conditions: [] }, { conditions: [{ audience: "x" }] }] }],
    ["an audience that is no text", { targeting_rules: [{ conditions: [{ audience: {} }] }] }],
    ["requires that is no list", { requires: { flag: "payments" } }],
    ["a requirement that is null", { requires: [{ flag: "payments", is: "on" }, null] }],
    ["a requirement without a flag", { requires: [{ is: "on" }] }],
  ])("is off for everyone: %s", (_, members) => {
    const flag = { ...flagWithRules({ conditions: [] }), ...members } as ResolvedState;
    const off = { value: false, variation: "off", reason: "default" };
    expect(compile(flag, withFlags(proFlag)).constant).toEqual(off);
    expect(explain(flag, pro, withFlags(proFlag))).toMatchObject(off);
    expect(compile({ ...flag, enabled: false }).constant).toMatchObject({ reason: "disabled" });
  });

  it.each<[string, unknown]>([
    ["a number", 5],
    ["another word", "maybe"],
    ["nothing", undefined],
    ["an empty list", []],
    ["a list without texts", [null, 1, {}]],
  ])("does not meet a requirement whose value is %s", (_, is) => {
    const flag = requiring({ flag: "payments", is } as unknown as Requirement);
    const typed = { ...proFlag, variations: [{ key: "a" }], off_variation: null };
    for (const required of [proFlag, typed] as ResolvedState[])
      for (const context of [pro, free]) {
        expect(compile(flag, withFlags(required)).evaluate(context)).toEqual(failed);
        expect(explain(flag, context, withFlags(required))).toMatchObject(failed);
      }
  });
});

describe("given a requirement whose required flag is the same for everyone", () => {
  const on = { ...flagWithRollout("payments", 100) };
  const off = { ...on, enabled: false };

  it("is constant, or costs nothing", () => {
    const met = requiring({ flag: "payments", is: "on" });
    expect(compile(met, withFlags(on)).constant).toMatchObject({ reason: "static" });
    expect(compile(met, withFlags(off)).constant).toEqual(failed);
    expect(compile({ ...proFlag, ...met }, withFlags(on)).plan.rules).toEqual([]);
  });

  it("leaves out its condition, or the rule", () => {
    const inRule = oneRuleFlag({ flag: "payments", is: "on" }, isPro);
    const [rule] = compile(inRule, withFlags(on)).plan.rules;
    expect(rule?.conditions).toHaveLength(1);
    expect(compile(inRule, withFlags(off)).constant).toMatchObject({ reason: "default" });
    const only = oneRuleFlag({ flag: "payments", is: "on" });
    expect(compile(only, withFlags(on)).constant).toMatchObject({ reason: "targeting_match" });
  });
});

describe("given flags that share an audience or a required flag", () => {
  it("evaluates it once for a context", () => {
    let reads = 0;
    const counted = {
      get plan() {
        reads += 1;
        return "pro";
      },
    };
    const references = { ...withAudience({ match: [[isPro]] }), ...withFlags(proFlag) };
    const audiences = withAudience({ match: [[isPro]] }).audiences;
    const flags = Array.from({ length: 20 }, (_, index) =>
      compile(
        { ...oneRuleFlag({ audience: "beta" }, { flag: "payments", is: "on" }), key: `f${index}` },
        { ...references, audiences },
      ),
    );
    const context = contextOf(counted);
    for (const { evaluate } of flags) expect(evaluate(context).value).toBe(true);
    expect(reads).toBe(1);
  });

  it("keeps contexts apart", () => {
    const flag = compile(requiring({ flag: "payments", is: "on" }), withFlags(proFlag));
    const values = [pro, free, pro, emptyContext, free].map(
      (context) => flag.evaluate(context).value,
    );
    expect(values).toEqual([true, false, true, false, false]);
  });

  it("keeps contexts apart between the steps of an evaluation", () => {
    const flag = compile(
      oneRuleFlag({ flag: "payments", is: "on" }, condition("id", "equals", "user-1")),
      withFlags(proFlag),
    );
    const steps = [pro, free].map((context) => evaluateInSteps(flag, context));
    const results: (Evaluation | undefined)[] = [undefined, undefined];
    while (results.includes(undefined))
      for (const [index, each] of steps.entries()) {
        const step = each.next();
        if (step.done) results[index] ??= step.value;
      }
    expect(results.map((result) => result?.outcome.value)).toEqual([true, false]);
  });
});

describe("given a state that is compiled again after a reference changed", () => {
  it("evaluates and explains with the new one, even if the maps are the same", () => {
    const flags = new Map<string, CompiledFlag>([["payments", compile(proFlag)]]);
    const references = { ...noReferences, flags };
    const state = oneRuleFlag({ flag: "payments", is: "on" });
    expect(compile(state, references).evaluate(free).value).toBe(false);
    flags.set("payments", compile(flagWithRollout("payments", 100)));
    expect(compile(state, references).evaluate(free).value).toBe(true);
    expect(explain(state, free, references).value).toBe(true);
  });
});

describe("given an audience", () => {
  const key = "000102030405060708090a0b0c0d0e0f";
  const list = { attribute: "id", count: 1, key, chunks: ["0".repeat(64)] };
  const chunks = chunksByReference(key, ["user-1"], 0);
  const flag = oneRuleFlag({ audience: "beta" });
  const isIn = (audience: Audience, attributes: object, bytes = chunks) =>
    compile(flag, withAudience(audience, bytes)).evaluate(contextOf(attributes)).value;

  it("has the entries of its list and the users of its alternatives", () => {
    const audience = { match: [[isPro]], list };
    expect(isIn(audience, { id: "user-1" })).toBe(true);
    expect(isIn(audience, { plan: "pro" })).toBe(true);
    expect(isIn(audience, { id: "user-2", plan: "free" })).toBe(false);
  });

  it("has nobody without list and alternatives, so that rules with it are left out", () => {
    expect(compile(flag, withAudience({ match: [] })).constant).toMatchObject({
      reason: "default",
    });
    const empty = { match: [], list: { ...list, count: 0, chunks: [] } };
    expect(compile(flag, withAudience(empty)).constant).toMatchObject({ reason: "default" });
  });

  it("has nobody by an alternative without conditions", () => {
    expect(isIn({ match: [[]] }, { id: "user-1" }, [])).toBe(false);
  });

  it.each<[string, unknown]>([
    ["match", { match: null }],
    ["an alternative", { match: [null] }],
    ["a condition", { match: [[null]] }],
    ["a condition's operator", { match: [[condition("plan", "near" as "equals", "pro")]] }],
    ["a nested reference", { match: [[{ audience: "beta" }]] }],
    ["the key of the list", { match: [], list: { ...list, key: "0" } }],
    ["a missing key", { match: [], list: { attribute: "id" } }],
  ])("has nobody if it is malformed: %s", (_, audience) => {
    expect(isIn(audience as Audience, { id: "user-1", plan: "pro" })).toBe(false);
  });

  it("evaluates one condition in a step", () => {
    const match = Array.from({ length: 20 }, (_, index) => [
      condition("plan", "equals", `${index}`),
    ]);
    const compiled = compile(flag, withAudience({ match }));
    const steps = evaluateInSteps(compiled, pro);
    let count = 0;
    while (steps.next().done !== true) count += 1;
    expect(count).toBe(1 + match.length);
  });

  it("explains the list and the alternatives up to the first that matches", () => {
    const match = [[condition("plan", "equals", "team")], [isPro], [isPro]];
    const audience = { match, list };
    const traceFor = (attributes: object) =>
      explain(flag, contextOf(attributes), withAudience(audience, chunks)).rules[0]?.conditions[0];
    expect(traceFor({ id: "user-1", plan: "pro" })).toEqual({
      ...{ audience: "beta", held: true, listed: true, alternatives: [] },
    });
    const plan = { attribute: "plan", operator: "equals" };
    expect(traceFor({ id: "user-2", plan: "pro" })).toEqual({
      ...{ audience: "beta", held: true, listed: false },
      alternatives: [
        { matched: false, conditions: [{ ...plan, held: false }] },
        { matched: true, conditions: [{ ...plan, held: true }] },
      ],
    });
    const withoutList = explain(flag, emptyContext, withAudience({ match: [[isPro]] }));
    expect(withoutList.rules[0]?.conditions[0]).toEqual({
      ...{ audience: "beta", held: false },
      alternatives: [
        { matched: false, conditions: [{ ...plan, held: false, obstacle: "attribute_missing" }] },
      ],
    });
  });

  it("explains thousands of conditions with a bounded trace", () => {
    const match = Array.from({ length: 20 }, () =>
      Array(50).fill(condition("plan", "equals", "x")),
    );
    const references = withAudience({ match });
    const rule = { conditions: Array(50).fill({ audience: "beta" }) };
    const { rules } = explain(flagWithRules(...Array(100).fill(rule)), pro, references);
    const traces = rules.flatMap(({ conditions }) => conditions);
    const details = traces.flatMap((trace) => ("alternatives" in trace ? trace.alternatives : []));
    expect(traces).toHaveLength(5_000);
    expect(details.flatMap(({ conditions }) => conditions)).toHaveLength(10_000);
  });
});

describe("given an explanation of requirements", () => {
  const login: ResolvedState = { ...flagWithRollout("login", 100), enabled: false };
  const accounts = { ...requiring({ flag: "login", is: "on" }), key: "accounts" };
  const payments = { ...requiring({ flag: "accounts", is: "on" }), key: "payments" };
  const chain = new Map<string, CompiledFlag>();
  for (const state of [login, accounts, payments])
    chain.set(state.key, compile(state, { ...noReferences, flags: chain }));
  const references = { ...noReferences, flags: chain };

  it("names the chain of unmet requirements, and reaches no rule", () => {
    const flag = { ...flagWithRules({ conditions: [] }), requires: accounts.requires };
    const off = { held: false, value: false, variation: "off" };
    const unmet = { ...off, is: "on", reason: "prerequisite_failed" };
    const { rules, requires } = explain(
      { ...flag, requires: [{ flag: "payments", is: "on" }] },
      pro,
      references,
    );
    expect(requires).toEqual([
      {
        ...{ flag: "payments", ...unmet },
        because: [
          { flag: "accounts", ...unmet },
          { ...{ flag: "login", is: "on", ...off }, reason: "disabled" },
        ],
      },
    ]);
    expect(rules.map(({ reached }) => reached)).toEqual([false]);
  });

  it("shows the value, the variation and the reason of a met one", () => {
    const typed = {
      ...{ ...proFlag, value_type: "string" as const, variations: [{ key: "blue" }] },
      ...{ serve: { variation: "blue" }, off_variation: null },
    };
    const flag = requiring({ flag: "payments", is: ["blue", "red"] });
    const traceFor = (context: typeof pro) =>
      explain(flag, context, withFlags(typed)).requires?.[0];
    expect(traceFor(pro)).toEqual({
      ...{ flag: "payments", is: ["blue", "red"], held: true, value: true },
      ...{ variation: "blue", reason: "targeting_match" },
    });
    expect(traceFor(free)).toEqual({
      ...{ flag: "payments", is: ["blue", "red"], held: false, value: false },
      ...{ variation: null, reason: "default" },
    });
  });

  it("has no requirements for a flag without any, and for a disabled flag", () => {
    expect(explain(proFlag, pro)).not.toHaveProperty("requires");
    const disabled = { ...payments, enabled: false };
    expect(explain(disabled, pro, references)).not.toHaveProperty("requires");
  });

  it("follows one chain, although each of ten flags has met requirements with chains of their own", () => {
    const levels = 10;
    const flags = new Map<string, CompiledFlag>();
    for (let level = 0; level < levels; level++)
      for (let index = 0; index < 10; index++) {
        // Nine are met, because the required flags are off. The last one is not.
        const requires = Array.from({ length: 10 }, (_, below): Requirement => {
          return { flag: `${level - 1}-${below}`, is: below === 9 ? "on" : "off" };
        });
        const state = { ...requiring(...(level === 0 ? [] : requires)), key: `${level}-${index}` };
        const own = { ...state, enabled: level > 0 };
        flags.set(own.key, compile(own, { ...noReferences, flags }));
      }
    const top = requiring({ flag: `${levels - 1}-0`, is: "on" });
    const { requires } = explain(top, createContext(given({})), { ...noReferences, flags });
    expect(requires?.[0]?.because).toHaveLength(levels - 1);
  });

  it("is made in steps", () => {
    const compiled = compile(requiring({ flag: "payments", is: "on" }), references);
    expect(resultOf(evaluateInSteps(compiled, pro)).outcome).toEqual(failed);
  });
});

it("releases an audience with the compiled flag, although the state of the flag lives on", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const state = oneRuleFlag({ audience: "beta" });
  function evaluateOnce() {
    const references = withAudience({ match: [[isPro]] });
    expect(explain(compile(state, references), pro, references).value).toBe(true);
    return new WeakRef(references.audiences.get("beta") as object);
  }
  const audience = evaluateOnce();
  // A weak reference keeps its target until the end of the current task.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(audience.deref()).toBeUndefined();
  expect(state.enabled).toBe(true);
});

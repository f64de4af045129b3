import { contextOf, type Requirement } from "@halyard/evaluation";
import { describe, expect, test } from "@jest/globals";
import { parseRules, parseRulesEvent } from "../src/rules/parse-rules.ts";
import { RuleSet } from "../src/rules/rule-set.ts";
import { environmentId, type Settings } from "./support/fake-edge.ts";
import { listOf } from "./support/lists.ts";
import { randomFrom } from "./support/random.ts";

type Flags = Record<string, Settings>;
type Audiences = Record<string, object>;

const on = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 1 };
const off = { ...on, enabled: false };
const staff = { match: [[{ attribute: "plan", operator: "equals", value: "staff" }]] };

function requiring(flag: string, is: Requirement["is"] = "on"): Settings {
  return { ...on, requires: [{ flag, is }], needs: ["requires"] };
}

function targeting(audience: string): Settings {
  const targeting_rules = [{ conditions: [{ audience }] }];
  return { ...on, targeting_rules, needs: ["audiences"] };
}

function dataOf(flags: Flags, audiences: Audiences, more: object = {}): string {
  return JSON.stringify({ format: 2, environment_id: environmentId, flags, audiences, ...more });
}

function ruleSetOf(flags: Flags, audiences: Audiences = {}): RuleSet {
  const ruleSet = new RuleSet();
  replace(ruleSet, flags, audiences);
  return ruleSet;
}

function replace(ruleSet: RuleSet, flags: Flags, audiences: Audiences = {}): string[] {
  const parsed = parseRules(dataOf(flags, audiences));
  if (!parsed.ok) throw new Error(parsed.problem);
  return ruleSet.replace(parsed.value, '"1"', "stream").sort();
}

/** Applies an event of the stream. Returns the keys of changed flags. */
function change(
  ruleSet: RuleSet,
  changed: {
    flags?: Flags;
    audiences?: Audiences;
    removed?: string[];
    removed_audiences?: string[];
  },
): string[] {
  const { flags = {}, audiences = {}, ...more } = changed;
  const parsed = parseRulesEvent(dataOf(flags, audiences, more));
  if (!parsed.ok) throw new Error(parsed.problem);
  return ruleSet.apply(parsed.value, '"2"', "stream").sort();
}

/** Returns the value of a flag for a user; undefined if the flag counts as not found. */
function valueIn(ruleSet: RuleSet, key: string, user: object = {}): boolean | undefined {
  return ruleSet.flags.get(key)?.compiled.evaluate(contextOf(user)).value;
}

function problemOf(ruleSet: RuleSet, key: string): string | undefined {
  return ruleSet.withheld.get(key)?.problem;
}

describe("a flag with an audience", () => {
  test("is on for the users of the audience", () => {
    const ruleSet = ruleSetOf({ tools: targeting("staff") }, { staff });
    expect(valueIn(ruleSet, "tools", { plan: "staff" })).toBe(true);
    expect(valueIn(ruleSet, "tools", { plan: "free" })).toBe(false);
  });

  test("changes with the audience, and other flags do not", () => {
    const flags = { tools: targeting("staff"), chain: requiring("tools"), plain: on };
    const ruleSet = ruleSetOf(flags, { staff });
    const plain = ruleSet.flags.get("plain");
    const pro = { match: [[{ attribute: "plan", operator: "equals", value: "pro" }]] };
    expect(valueIn(ruleSet, "chain", { plan: "pro" })).toBe(false);
    expect(change(ruleSet, { audiences: { staff: pro } })).toEqual(["chain", "tools"]);
    expect(valueIn(ruleSet, "tools", { plan: "pro" })).toBe(true);
    expect(valueIn(ruleSet, "chain", { plan: "pro" })).toBe(true);
    expect(ruleSet.flags.get("plain")).toBe(plain);
  });

  test("keeps its compiled form while nothing changes", () => {
    const ruleSet = ruleSetOf({ tools: targeting("staff"), chain: requiring("tools") }, { staff });
    const before = [...ruleSet.flags.values()];
    expect(change(ruleSet, { flags: { chain: requiring("tools") }, audiences: { staff } })).toEqual(
      [],
    );
    expect([...ruleSet.flags.values()]).toEqual(before);
  });

  test.each<[string, Audiences, string]>([
    ["an unknown audience", {}, 'the audience "staff" is unknown'],
    [
      "an audience with an unknown operator",
      { staff: { match: [[{ attribute: "a", operator: "near", value: "b" }]] } },
      'the audience "staff" uses "near", which is unknown',
    ],
    [
      "an audience of a later release",
      { staff: { needs: ["moon"], match: "full" } },
      'the audience "staff" uses "moon", which is unknown',
    ],
  ])("counts as not found with %s", (_, audiences, problem) => {
    const ruleSet = ruleSetOf({ tools: targeting("staff"), plain: on }, audiences);
    expect([...ruleSet.flags.keys()]).toEqual(["plain"]);
    expect(problemOf(ruleSet, "tools")).toBe(problem);
  });

  test("counts as not found when its audience is removed, and is found again with it", () => {
    const ruleSet = ruleSetOf({ tools: targeting("staff") }, { staff });
    expect(change(ruleSet, { removed_audiences: ["staff"] })).toEqual(["tools"]);
    expect(ruleSet.flags.size).toBe(0);
    expect(change(ruleSet, { audiences: { staff } })).toEqual(["tools"]);
    expect(valueIn(ruleSet, "tools", { plan: "staff" })).toBe(true);
  });

  test("needs no audience while it is disabled", () => {
    const ruleSet = ruleSetOf({ tools: { ...targeting("staff"), enabled: false } });
    expect(valueIn(ruleSet, "tools")).toBe(false);
  });

  test("can use an audience named __proto__", () => {
    const text = dataOf({ tools: targeting("__proto__") }, {}).replace(
      '"audiences":{}',
      `"audiences":{"__proto__":${JSON.stringify(staff)}}`,
    );
    const parsed = parseRules(text);
    const ruleSet = new RuleSet();
    if (parsed.ok) ruleSet.replace(parsed.value, undefined, "poll");
    expect(valueIn(ruleSet, "tools", { plan: "staff" })).toBe(true);
  });
});

describe("a flag that requires another", () => {
  test.each<[Requirement["is"], Settings, boolean]>([
    ["on", on, true],
    ["on", off, false],
    ["off", on, false],
    ["off", off, true],
  ])("to be %s, with the other flag %j, is %s", (is, other, expected) => {
    const ruleSet = ruleSetOf({ checkout: requiring("payments", is), payments: other });
    expect(valueIn(ruleSet, "checkout")).toBe(expected);
  });

  test("changes with it, through a chain", () => {
    const ruleSet = ruleSetOf({ a: requiring("b"), b: requiring("c"), c: on, other: on });
    expect(valueIn(ruleSet, "a")).toBe(true);
    expect(change(ruleSet, { flags: { c: off } })).toEqual(["a", "b", "c"]);
    expect(valueIn(ruleSet, "a")).toBe(false);
  });

  test.each<Requirement["is"]>(["on", "off"])(
    "to be %s counts as not found without it, and so do its dependents",
    (is) => {
      const ruleSet = ruleSetOf({ a: requiring("b", is), b: requiring("c", is), c: on });
      expect(change(ruleSet, { removed: ["c"] })).toEqual(["a", "b", "c"]);
      expect(ruleSet.flags.size).toBe(0);
      expect(problemOf(ruleSet, "b")).toBe('the required flag "c" is unknown');
      expect(problemOf(ruleSet, "a")).toBe('the required flag "b" counts as not found');
      expect(change(ruleSet, { flags: { c: on } })).toEqual(["a", "b", "c"]);
    },
  );

  test("counts as not found if this version cannot evaluate the other flag", () => {
    const ruleSet = ruleSetOf({ a: requiring("b", "off"), b: { ...on, needs: ["moon"] } });
    expect(ruleSet.flags.size).toBe(0);
  });

  test("keeps its counts when the other flag changes", () => {
    const ruleSet = ruleSetOf({ a: requiring("b"), b: on });
    ruleSet.flags.get("a")?.count(true);
    change(ruleSet, { flags: { b: off } });
    ruleSet.flags.get("a")?.count(false);
    expect(ruleSet.takeCounts()).toEqual(new Map([["a", { on: 1, off: 1 }]]));
  });
});

describe("a circle of requirements", () => {
  const circle = { a: requiring("b"), b: requiring("c"), c: requiring("a"), above: requiring("a") };

  test("costs its flags and those that require them, and no others", () => {
    const ruleSet = ruleSetOf({ ...circle, below: on, plain: requiring("below") });
    expect([...ruleSet.flags.keys()].sort()).toEqual(["below", "plain"]);
    expect(problemOf(ruleSet, "a")).toBe("its requirements form a circle");
  });

  test("ends when one of the flags is disabled, because it then requires nothing", () => {
    const ruleSet = ruleSetOf(circle);
    const disabled = { ...requiring("c"), enabled: false };
    expect(change(ruleSet, { flags: { b: disabled } })).toEqual(["a", "above", "b", "c"]);
    expect(valueIn(ruleSet, "a")).toBe(false);
    expect(change(ruleSet, { flags: { b: requiring("c") } })).toEqual(["a", "above", "b", "c"]);
    expect(ruleSet.flags.size).toBe(0);
  });

  test("can have one flag", () => {
    expect(ruleSetOf({ a: requiring("a", "off") }).flags.size).toBe(0);
  });
});

test("a chain of 30,000 flags is read without exhausting the stack", () => {
  const flags: Flags = { "f-0": on };
  for (let i = 1; i < 30_000; i += 1) flags[`f-${i}`] = requiring(`f-${i - 1}`);
  const ruleSet = ruleSetOf(flags);
  expect(valueIn(ruleSet, "f-64")).toBe(true);
  expect(ruleSet.flags.has("f-65")).toBe(false);
  expect(ruleSet.flags.size).toBe(65);
  expect(problemOf(ruleSet, "f-65")).toBe("its chain of requirements is too long");
  expect(change(ruleSet, { flags: { "f-0": off } }).length).toBe(65);
});

test("a random series of changes leads to the state of a whole rule set, and names what changed", () => {
  const random = randomFrom(7);
  const flags = new Map<string, Settings>();
  const audiences = new Map<string, object>();
  const ruleSet = ruleSetOf({});
  for (let step = 0; step < 1_000; step += 1) {
    const before = new Map(ruleSet.flags);
    const changed = change(ruleSet, randomChange(random, flags, audiences));
    const whole = ruleSetOf(Object.fromEntries(flags), Object.fromEntries(audiences));
    expect([...ruleSet.flags.keys()].sort()).toEqual([...whole.flags.keys()].sort());
    for (const key of whole.flags.keys())
      for (const plan of plans)
        expect(valueIn(ruleSet, key, { plan })).toBe(valueIn(whole, key, { plan }));
    const keys = new Set([...before.keys(), ...ruleSet.flags.keys()]);
    const differing = [...keys].filter((key) => before.get(key) !== ruleSet.flags.get(key));
    expect(changed).toEqual(differing.sort());
  }
});

const plans = ["free", "pro", "staff"];

/** Changes or removes a flag or an audience. Some flags form circles, and some refer to what does not exist. */
function randomChange(
  random: () => number,
  flags: Map<string, Settings>,
  audiences: Map<string, object>,
): Parameters<typeof change>[1] {
  const number = (below: number) => Math.floor(random() * below);
  const key = `f-${number(12)}`;
  const audience = `a-${number(3)}`;
  if (random() < 0.2) {
    const value = plans[number(plans.length)];
    const match = [[{ attribute: "plan", operator: "equals", value }]];
    if (random() < 0.3) {
      audiences.delete(audience);
      return { removed_audiences: [audience] };
    }
    audiences.set(audience, { match });
    return { audiences: { [audience]: { match } } };
  }
  if (random() < 0.2) {
    flags.delete(key);
    return { removed: [key] };
  }
  const requires = Array.from({ length: number(3) }, () => ({
    flag: `f-${number(12)}`,
    is: random() < 0.5 ? ("on" as const) : ("off" as const),
  }));
  const conditions = random() < 0.3 ? [{ audience }] : [];
  const targeting_rules = random() < 0.5 ? [{ conditions }] : [];
  const flag = { ...on, enabled: random() < 0.8, requires, targeting_rules };
  flags.set(key, flag);
  return { flags: { [key]: flag } };
}

describe("a flag whose audience has a list", () => {
  const before = listOf(["ada", "bob"]);
  const after = listOf(["ada", "eve"], { bits: 1 });
  const beta = { match: [], list: before.list };
  const flags = { beta: targeting("beta"), chain: requiring("beta"), plain: on };

  function withList(): RuleSet {
    const ruleSet = ruleSetOf(flags, { beta });
    ruleSet.addChunks(before.chunks);
    return ruleSet;
  }

  test("waits for the chunks, and so do the flags that require it", () => {
    const ruleSet = ruleSetOf(flags, { beta });
    expect([...ruleSet.flags.keys()]).toEqual(["plain"]);
    expect(ruleSet.isWaiting).toBe(true);
    expect(problemOf(ruleSet, "chain")).toBe('the list of "beta" is incomplete');
    expect(ruleSet.lists.missing).toEqual(before.list.chunks);
    expect(ruleSet.addChunks(before.chunks)).toEqual(["beta", "chain"]);
    expect(ruleSet.isWaiting).toBe(false);
    expect(valueIn(ruleSet, "chain", { id: "bob" })).toBe(true);
    expect(valueIn(ruleSet, "chain", { id: "eve" })).toBe(false);
  });

  test("keeps its previous list until all chunks of the next are here, and then switches", () => {
    const ruleSet = withList();
    expect(change(ruleSet, { audiences: { beta: { match: [], list: after.list } } })).toEqual([]);
    const [first, second] = [...after.chunks].map((entry) => new Map([entry]));
    for (const chunk of [undefined, first]) {
      if (chunk !== undefined) expect(ruleSet.addChunks(chunk)).toEqual([]);
      expect(valueIn(ruleSet, "beta", { id: "bob" })).toBe(true);
      expect(valueIn(ruleSet, "chain", { id: "eve" })).toBe(false);
    }
    expect(ruleSet.addChunks(second ?? new Map())).toEqual(["beta", "chain"]);
    expect(valueIn(ruleSet, "beta", { id: "bob" })).toBe(false);
    expect(valueIn(ruleSet, "chain", { id: "eve" })).toBe(true);
    expect([...ruleSet.lists.chunks.keys()].sort()).toEqual([...after.chunks.keys()].sort());
  });

  test("keeps its previous rules too, and gives them up with the list", () => {
    const ruleSet = withList();
    const excluding = { ...targeting("beta"), rollout_percentage: 0 };
    const audiences = { beta: { match: [], list: after.list } };
    expect(change(ruleSet, { flags: { beta: excluding }, audiences })).toEqual([]);
    expect(valueIn(ruleSet, "beta", { id: "bob" })).toBe(true);
    expect(ruleSet.received?.flags.get("beta")?.rollout_percentage).toBe(0);
    expect(ruleSet.giveUp(["beta", "chain", "plain"])).toEqual(["beta", "chain"]);
    expect([...ruleSet.flags.keys()]).toEqual(["plain"]);
    expect(ruleSet.addChunks(after.chunks)).toEqual(["beta", "chain"]);
  });

  test("waits for nothing when it is disabled, removed or needs no list any more", () => {
    const audiences = { beta: { match: [], list: after.list } };
    const disabled = { ...targeting("beta"), enabled: false };
    for (const [flag, expected] of [
      [disabled, false],
      [on, true],
    ] as const) {
      const ruleSet = withList();
      change(ruleSet, { audiences });
      expect(change(ruleSet, { flags: { beta: flag } })).toEqual(["beta", "chain"]);
      expect(valueIn(ruleSet, "chain")).toBe(expected);
      expect(ruleSet.isWaiting).toBe(false);
    }
    const ruleSet = withList();
    expect(change(ruleSet, { audiences, removed: ["beta"] })).toEqual(["beta", "chain"]);
  });

  test("keeps its state when the previous list returns", () => {
    const ruleSet = withList();
    const flag = ruleSet.flags.get("beta");
    const [entry] = before.chunks;
    change(ruleSet, { audiences: { beta: { match: [], list: after.list } } });
    change(ruleSet, { audiences: { beta } });
    ruleSet.addChunks(new Map([entry as [string, Uint8Array]]));
    expect(valueIn(ruleSet, "beta", { id: "bob" })).toBe(true);
    expect(flag?.compiled.evaluate(contextOf({ id: "bob" })).value).toBe(true);
  });

  describe("that changes while its chunks are loaded", () => {
    const lists = ["eve", "mallory", "trent"].map((id) => listOf([id]));
    const [second, third, fourth] = lists as [typeof before, typeof before, typeof before];
    const audience = ({ list }: typeof before) => ({ beta: { match: [], list } });

    /** Publishes the second list, and the third and fourth before its chunk arrives. */
    function superseded(): RuleSet {
      const ruleSet = withList();
      for (const each of lists) change(ruleSet, { audiences: audience(each) });
      return ruleSet;
    }

    test("takes the version in progress, and then the newest one", () => {
      const ruleSet = superseded();
      expect(ruleSet.lists.missing).toEqual(second.list.chunks);
      expect(ruleSet.addChunks(second.chunks)).toEqual(["beta", "chain"]);
      expect(valueIn(ruleSet, "chain", { id: "ada" })).toBe(false);
      expect(valueIn(ruleSet, "chain", { id: "eve" })).toBe(true);
      expect(ruleSet.isWaiting).toBe(true);
      expect(ruleSet.lists.missing).toEqual(fourth.list.chunks);
      expect(ruleSet.addChunks(third.chunks)).toEqual([]);
      expect(ruleSet.addChunks(fourth.chunks)).toEqual(["beta", "chain"]);
      expect(valueIn(ruleSet, "chain", { id: "trent" })).toBe(true);
      expect(ruleSet.isWaiting).toBe(false);
    });

    test("has the version in progress first, if there was none before", () => {
      const ruleSet = ruleSetOf(flags, audience(second));
      change(ruleSet, { audiences: audience(third) });
      expect(ruleSet.isUnsettled).toBe(true);
      expect(ruleSet.addChunks(second.chunks)).toEqual(["beta", "chain"]);
      expect(valueIn(ruleSet, "chain", { id: "eve" })).toBe(true);
      expect(ruleSet.isUnsettled).toBe(false);
    });

    test("continues with the newest version if a chunk in progress cannot be loaded", () => {
      const ruleSet = superseded();
      ruleSet.skipChunk(second.list.chunks[0] as string);
      expect(ruleSet.lists.missing).toEqual(fourth.list.chunks);
      expect(ruleSet.addChunks(fourth.chunks)).toEqual(["beta", "chain"]);
    });

    test("waits for a version that is as new as its rules", () => {
      const ruleSet = superseded();
      change(ruleSet, { flags: { beta: { ...targeting("beta"), rollout_percentage: 0 } } });
      expect(ruleSet.addChunks(second.chunks)).toEqual([]);
      expect(valueIn(ruleSet, "chain", { id: "ada" })).toBe(true);
      expect(ruleSet.addChunks(fourth.chunks)).toEqual(["beta", "chain"]);
      expect(valueIn(ruleSet, "chain", { id: "trent" })).toBe(false);
    });

    test("does not wait for the newest versions of two lists at once", () => {
      const both = [
        { conditions: [{ audience: "beta" }] },
        { conditions: [{ audience: "other" }] },
      ];
      const other = ({ list }: typeof before) => ({ other: { match: [], list } });
      const ruleSet = ruleSetOf(
        { beta: { ...on, targeting_rules: both } },
        { ...audience(before), ...other(before) },
      );
      ruleSet.addChunks(before.chunks);
      change(ruleSet, { audiences: { ...audience(second), ...other(third) } });
      change(ruleSet, { audiences: audience(fourth) });
      expect(ruleSet.addChunks(second.chunks)).toEqual([]);
      change(ruleSet, { audiences: other(after) });
      expect(ruleSet.addChunks(third.chunks)).toEqual(["beta"]);
      for (const id of ["eve", "mallory"]) expect(valueIn(ruleSet, "beta", { id })).toBe(true);
    });
  });

  test("with an empty list is off for everyone", () => {
    const ruleSet = ruleSetOf(flags, { beta: { match: [], list: { ...before.list, chunks: [] } } });
    expect(valueIn(ruleSet, "beta", { id: "ada" })).toBe(false);
  });

  test.each<[string, object]>([
    ["no match", { list: before.list }],
    ["a match that is no list of alternatives", { match: [{}] }],
    ["a list without a key", { match: [], list: { ...before.list, key: "00" } }],
    ["a number of chunks that bits cannot select", { match: [], list: threeChunks() }],
    ["a chunk whose name is no SHA-256", { match: [], list: { ...before.list, chunks: ["../x"] } }],
    ["null as its list", { match: [], list: null }],
    ["another form of a later release", { geo: { within: "DE" } }],
  ])("is withheld alone if the audience has %s", (_, audience) => {
    const ruleSet = ruleSetOf(flags, { beta: audience });
    expect([...ruleSet.flags.keys()]).toEqual(["plain"]);
    expect(problemOf(ruleSet, "beta")).toContain('the audience "beta" uses "another form');
    expect(ruleSet.isWaiting).toBe(false);
    expect(ruleSet.lists.missing).toEqual([]);
    expect(change(ruleSet, { audiences: { beta: { match: [] } } })).toEqual(["beta", "chain"]);
  });

  function threeChunks(): object {
    const [name] = before.list.chunks;
    return { ...before.list, chunks: [name, name, name] };
  }
});

test.each<[unknown]>([["payments"], [[null]]])(
  "a rule set with the requirements %j is rejected",
  (requires) => {
    expect(parseRules(dataOf({ a: { ...on, requires } as Settings }, {})).ok).toBe(false);
  },
);

test.each<[unknown]>([[[{ is: "on" }]], [[{ flag: "b", is: 1 }]]])(
  "a flag with the requirements %j is withheld, because a later release may have this form",
  (requires) => {
    const parsed = parseRules(dataOf({ a: { ...on, requires } as Settings }, {}));
    expect(parsed.ok && [...parsed.value.unsupported.keys()]).toEqual(["a"]);
  },
);

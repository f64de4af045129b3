import type { FlagEntry, SnapshotEntry, TargetingRule } from "@halyard/contracts";
import { createContext, type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { type ChangedFlag, changedFlags, deltaFor } from "../../src/answers/environment-view.ts";
import { deriveView } from "../../src/answers/environment-views.ts";
import { asBooleans } from "../../src/answers/value-form.ts";
import { buildSnapshot } from "../../src/snapshot/snapshot.ts";
import { deletedFlag, flagEntry, id } from "../builders.ts";

describe("given the flags of an environment", () => {
  it("returns their values in the order of their keys", () => {
    const view = viewOf(flag(1, "beta", true), flag(2, "alpha", false), flag(3, "10", true));
    expect(bodyOf(view)).toBe('{"flags":{"10": true,"alpha":false,"beta": true}}');
  });

  it.each([
    { enabled: true, outcome: { value: true, variation: "on", reason: "static" } },
    { enabled: false, outcome: { value: false, variation: "off", reason: "disabled" } },
  ])("returns $outcome.reason if enabled is $enabled", ({ enabled, outcome }) => {
    const found = viewOf(flag(1, "checkout", enabled)).find("checkout");
    expect(found?.compiled.evaluate(emptyContext)).toEqual(outcome);
  });

  it("omits deleted flags", () => {
    const view = viewOf(flag(1, "gone", true), deletedFlag(2, id("flag", 1)));
    expect(bodyOf(view)).toBe('{"flags":{}}');
  });

  it("assigns a key that two flags claim to the later flag, regardless of their order", () => {
    const earlier = flag(1, "checkout", true);
    const later = flag(2, "checkout", false);
    for (const entries of [
      [earlier, later],
      [later, earlier],
    ])
      expect(bodyOf(viewOf(...entries))).toBe('{"flags":{"checkout":false}}');
  });

  it("escapes invalid keys", () => {
    const keys = ["__proto__", 'quo"te', "naïve", "line\nbreak", "⚓"];
    const view = viewOf(...keys.map((key, number) => flag(number, key, true)));
    expect(Object.keys(JSON.parse(bodyOf(view)).flags).sort()).toEqual([...keys].sort());
    expect(bodyOf(view)).toMatch(/^[\x20-\x7e]*$/);
  });
});

describe("given the context of a user", () => {
  const german: TargetingRule = {
    conditions: [{ attribute: "country", operator: "equals", value: "DE" }],
  };
  const view = viewOf(
    flag(1, "constant", true),
    flag(2, "for-germany", true, { targeting_rules: [german] }),
    flag(3, "half", true, { rollout_percentage: 50 }),
  );

  it("evaluates each flag for the user's attributes", () => {
    const values = view.valuesFor(user("u1", "DE"));
    expect(JSON.parse(values.body)).toEqual({
      flags: {
        constant: true,
        "for-germany": true,
        half: view.find("half")?.compiled.evaluate(user("u1")).value,
      },
    });
    expect(JSON.parse(view.valuesFor(user("u1", "FR")).body).flags["for-germany"]).toBe(false);
  });

  it("evaluates each of many users independently", () => {
    for (let number = 0; number < 200; number += 1) {
      const context = user(`user-${number}`, number % 3 === 0 ? "de" : "at");
      const { flags } = JSON.parse(view.valuesFor(context).body);
      for (const { key, evaluate } of flagsOf(view))
        expect(flags[key]).toBe(evaluate(context).value);
    }
  });

  it("returns equal bodies and tags for equal values", () => {
    const [one, other] = ["DE", "de"].map((country) => view.valuesFor(user("u1", country)));
    expect(other).toEqual(one);
  });

  it("returns the prepared response for an empty context", () => {
    expect(view.valuesFor(emptyContext)).toBe(view.valuesWithoutContext);
  });

  it("distinguishes the values of many users", () => {
    const many = Array.from({ length: 4_000 }, (_, number) =>
      flag(number, `flag-${number}`, true, { rollout_percentage: 50 }),
    );
    const large = viewOf(...many);
    const tags = new Set<string>();
    for (let number = 0; number < 20; number += 1) {
      const context = user(`user-${number}`);
      const { body, etag } = large.valuesFor(context);
      tags.add(etag);
      expect(JSON.parse(body).flags["flag-7"]).toBe(
        large.find("flag-7")?.compiled.evaluate(context).value,
      );
    }
    expect(tags.size).toBe(20);
    for (const tag of tags) expect(tag.length).toBeLessThan(60);
  });
});

describe("given flags with lists, which are hashed at their first use", () => {
  const items = Array.from({ length: 1_000 }, (_, number) => number);
  it.each([
    ["an array", items],
    ["a text", items.join()],
  ])("counts many items as costly: %s", (_what, value) => {
    const rule: TargetingRule = { conditions: [{ attribute: "plan", operator: "in", value }] };
    const costs = [10, 200].map(
      (count) =>
        viewOf(
          ...Array.from({ length: count }, (_, number) =>
            flag(number, `flag-${number}`, true, { targeting_rules: [rule] }),
          ),
        ).isCostly,
    );
    expect(costs).toEqual([false, true]);
  });
});

describe("given the tag of values", () => {
  const tagOf = (...entries: SnapshotEntry[]) => viewOf(...entries).valuesWithoutContext.etag;
  const tag = tagOf(flag(1, "alpha", true), flag(2, "beta", false));

  it("is the same for the same values, regardless of the rules", () => {
    const never: TargetingRule = { conditions: [], value: false };
    expect(tagOf(flag(7, "beta", false), flag(8, "alpha", true))).toBe(tag);
    expect(tagOf(flag(2, "beta", true, { targeting_rules: [never] }), flag(1, "alpha", true))).toBe(
      tag,
    );
  });

  it("differs for other values", () => {
    const tags = [
      tag,
      tagOf(flag(1, "alpha", false), flag(2, "beta", false)),
      tagOf(flag(1, "alpha", true)),
      tagOf(flag(1, "alphab", true), flag(2, "eta", false)),
      deriveView(undefined).valuesWithoutContext.etag,
    ];
    expect(new Set(tags).size).toBe(tags.length);
  });

  it("is a strong validator", () => {
    expect(tag).toMatch(/^"[A-Za-z0-9_.-]{24,30}"$/);
  });
});

describe("given two views", () => {
  const same = flag(1, "same", true);
  const before = viewOf(same, flag(2, "flips", true), flag(3, "goes", true));
  const after = viewOf(same, flag(2, "flips", false), flag(4, "comes", false));

  it("returns the changed values and the removed keys", () => {
    expect(deltaOf(emptyContext, changedFlags(before, after))).toEqual({
      changed: [
        ["comes", "false"],
        ["flips", "false"],
      ],
      removed: ["goes"],
    });
  });

  it("returns no delta for identical views, or for a user whose values do not change", () => {
    expect(changedFlags(after, after)).toEqual([]);
    const half = viewOf(flag(1, "half", true, { rollout_percentage: 50 }));
    const whole = viewOf(flag(1, "half", true));
    const changes = changedFlags(half, whole);
    expect(deltaOf(userWithValue(half, true), changes)).toBeUndefined();
    expect(deltaOf(userWithValue(half, false), changes)).toMatchObject({
      changed: [["half", "true"]],
    });
  });
});

/** Evaluates without steps in between. */
const deltaOf = (context: EvaluationContext, flags: readonly ChangedFlag[]) =>
  deltaFor(context, flags, { form: asBooleans, inSteps: false }).next().value;

type View = ReturnType<typeof viewOf>;

const flagsOf = (view: View) =>
  view.segments.flatMap(({ flags }) => flags.map(({ compiled }) => compiled));
const bodyOf = (view: View) => view.valuesWithoutContext.body;

function user(userId: string, country?: string) {
  const attributes = new Map([["id", userId]]);
  if (country !== undefined) attributes.set("country", country);
  return createContext(attributes);
}

function userWithValue(view: View, wanted: boolean) {
  for (let number = 0; ; number += 1) {
    const context = user(`user-${number}`);
    if (flagsOf(view)[0]?.evaluate(context).value === wanted) return context;
  }
}

function flag(
  number: number,
  key: string,
  enabled: boolean,
  more: Partial<FlagEntry> = {},
): SnapshotEntry {
  return flagEntry({ flag_id: id("flag", number), key, enabled, ...more });
}

function viewOf(...entries: SnapshotEntry[]) {
  return deriveView(buildSnapshot(id("epoch"), entries).environments.get(id("env")));
}

import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  compile,
  contextOf,
  createContext,
  emptyContext,
  ignoredAttributes,
  readAttributes,
} from "../src/index.ts";
import { condition, flagWithRollout, oneRuleFlag } from "./flags.ts";
import { runs } from "./thorough.ts";

const holds = (context: unknown, ...asked: Parameters<typeof condition>) =>
  compile(oneRuleFlag(condition(...asked))).evaluate(contextOf(context)).value;

const isPresent = (context: unknown, name: string) => holds(context, name, "matches_regex", "");

describe("given an object from application code as a context", () => {
  it("reads an attribute when the first condition refers to it, and keeps the value", () => {
    let reads = 0;
    const context = contextOf({
      get plan() {
        reads += 1;
        return reads === 1 ? "pro" : "free";
      },
    });
    const flag = compile(oneRuleFlag(condition("plan", "equals", "pro")));
    expect(reads).toBe(0);
    expect([flag.evaluate(context).value, flag.evaluate(context).value]).toEqual([true, true]);
    expect(reads).toBe(1);
  });

  it("uses a change made before the first use", () => {
    const user = { id: "ann", plan: "free" };
    const context = contextOf(user);
    user.plan = "pro";
    const flag = compile(oneRuleFlag(condition("plan", "equals", "pro")));
    expect(flag.evaluate(context).value).toBe(true);
  });

  it.each(["constructor", "toString", "__proto__", "inherited", "getter"])(
    "does not read the inherited property %s",
    (name) => {
      class User {
        get getter() {
          return "x";
        }
      }
      Object.assign(User.prototype, { inherited: "x" });
      expect(isPresent(new User(), name)).toBe(false);
    },
  );

  it.each(["constructor", "toString", "__proto__", "hasOwnProperty"])(
    "reads the own property %s",
    (name) => {
      expect(isPresent(JSON.parse(`{"${name}":"x"}`), name)).toBe(true);
    },
  );

  it("reads objects without a prototype", () => {
    expect(isPresent(Object.assign(Object.create(null), { plan: "pro" }), "plan")).toBe(true);
  });

  it.each([
    undefined,
    null,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    {},
    new Date(0),
    () => "x",
    Symbol("x"),
    5n,
  ])("treats an attribute as missing: %p", (value) => {
    expect(isPresent({ a: value }, "a")).toBe(false);
  });

  it.each([undefined, null, "text", 5, true, ["x"], () => "x", Symbol("x"), 5n])(
    "reads no attributes of a context that is no object: %p",
    (context) => {
      expect(contextOf(context)).toBe(emptyContext);
    },
  );

  it("reads the valid elements of an array", () => {
    const user = { roles: [null, "admin", {}, 5] };
    expect(holds(user, "roles", "in", ["admin"])).toBe(true);
    expect(holds(user, "roles", "gt", 4)).toBe(true);
    expect(holds({ roles: [null] }, "roles", "not_in", ["admin"])).toBe(false);
  });

  it("passes on the exception of a getter", () => {
    const user = {
      get plan(): string {
        throw new Error("from the getter");
      },
    };
    expect(() => isPresent(user, "plan")).toThrow("from the getter");
  });
});

describe("given the id of an object from application code", () => {
  const idIs = (context: unknown, id: string) => {
    const { evaluate } = compile(oneRuleFlag(condition("id", "equals", id)));
    return evaluate(contextOf(context)).value;
  };

  it.each([
    ["id", { id: "ann" }, "ann"],
    ["user_id", { user_id: "ann" }, "ann"],
    ["id before user_id", { user_id: "bob", id: "ann" }, "ann"],
    ["a number", { id: 7 }, "7"],
    ["user_id beside an empty id", { id: "", user_id: "ann" }, "ann"],
    ["user_id beside an id of the wrong type", { id: true, user_id: "ann" }, "ann"],
    ["user_id beside an id that is not finite", { id: Number.NaN, user_id: "ann" }, "ann"],
  ])("reads %s", (_case, context, id) => {
    expect(idIs(context, id)).toBe(true);
  });

  it.each([
    {},
    { id: "" },
    { id: true },
    { id: ["ann"] },
    { id: Number.NaN },
    { targetingKey: "u" },
  ])("excludes a user without a valid id from percentages: %p", (context) => {
    const { evaluate } = compile(flagWithRollout("flag", 99));
    expect(evaluate(contextOf(context)).value).toBe(false);
  });
});

describe("given the diagnostics of a context", () => {
  it("names exactly the attributes that are ignored because of their types", () => {
    const user = {
      id: "ann",
      user_id: true,
      plan: "pro",
      age: 5,
      beta: false,
      roles: ["a"],
      nothing: null,
      notSet: undefined,
      text: "",
      address: { city: "x" },
      since: new Date(0),
      score: Number.NaN,
      mixed: ["a", {}],
    };
    expect(ignoredAttributes(user)).toEqual(["user_id", "address", "since", "score", "mixed"]);
    expect(ignoredAttributes({ id: ["ann"], user_id: "" })).toEqual(["id"]);
    for (const context of [undefined, null, "text", 5, [{}]])
      expect(ignoredAttributes(context)).toEqual([]);
  });
});

describe("given any object", () => {
  const value = fc.oneof(
    fc.constantFrom(null, undefined, Number.NaN, {}, "", "pro", 5, true),
    fc.array(fc.constantFrom(null, {}, "pro", 5, Number.POSITIVE_INFINITY)),
  );
  const names = ["id", "user_id", "targetingKey", "plan", "__proto__", "constructor"];
  const objects = fc.dictionary(fc.constantFrom(...names), value);

  it("finds the attributes that the tolerant reading of a request finds", () => {
    const conditions = names.flatMap((name) => [
      condition(name, "matches_regex", ""),
      condition(name, "equals", "pro"),
      condition(name, "not_equals", "pro"),
      condition(name, "equals", 5),
    ]);
    fc.assert(
      fc.property(objects, (object) => {
        const read = readAttributes(object, "ignore");
        // The request is rejected because of its id; in application code the id counts as missing.
        if (!read.ok) return;
        const [plain, validated] = [contextOf(object), createContext(read.attributes)];
        for (const each of conditions) {
          const { evaluate } = compile(oneRuleFlag(each));
          expect(evaluate(plain)).toBe(evaluate(validated));
        }
      }),
      { numRuns: runs(1_000) },
    );
  });
});

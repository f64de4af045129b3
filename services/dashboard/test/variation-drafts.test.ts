import { describe, expect, it } from "@jest/globals";
import {
  allKey,
  draftsOf,
  type TypedValueType,
  type VariationDraft,
  valueProblem,
  variationProblems,
  variationsIn,
  variationsText,
} from "../src/variations/variation-drafts.ts";

const draft = (key: string, text: string): VariationDraft => ({ uid: key, key, name: "", text });

describe("the drafts of variations", () => {
  it.each<[TypedValueType, string]>([
    ["number", '[{"key":"low","value":1.0},{"key":"high","value":1e-21,"name":"High"}]'],
    ["string", '[{"key":"a","value":"\\u00e9\\n"}]'],
    ["object", '[{"key":"a","value":{"10":1.0,"2":{"__proto__":[]}}}]'],
  ])("keep the texts of %s values that are not edited", (type, text) => {
    const stored = variationsIn(`{"key":"flag","variations":${text},"version":3}`);
    expect(variationsText(type, draftsOf(type, stored), "en")).toBe(text);
  });

  it("write an edited number as it was typed, and one with the decimal sign of the locale in JSON", () => {
    expect(variationsText("number", [draft("a", " 2.50 "), draft("b", "1,5")], "de")).toBe(
      '[{"key":"a","value":2.50},{"key":"b","value":1.5}]',
    );
  });

  it.each<[TypedValueType, string, string | undefined]>([
    ["number", "5e-324", undefined],
    ["number", "-0.5", undefined],
    ["number", "12px", "Enter a number without separators of thousands, such as 12.5 or 1e-3."],
    ["number", "1e999", "This number is too large."],
    ["string", "", undefined],
    ["string", "\ud800", "Texts must not contain NUL characters or broken Unicode."],
    ["object", '{"a": 1', "Line 1, column 8: expected a comma or }."],
    ["object", "[1]", 'Enter an object such as {"limit": 10}.'],
    ["object", '{"a": 1}', undefined],
  ])("check a %s value %j", (type, text, problem) => {
    expect(valueProblem(type, { text }, "en")).toBe(problem);
  });

  it("reject an edited number whose point can separate thousands, but keep a stored one", () => {
    const [stored] = draftsOf("number", variationsIn('{"variations":[{"key":"a","value":1.500}]}'));
    expect(valueProblem("number", { text: "1.500" }, "de")).toMatch(/^Ambiguous/);
    expect(valueProblem("number", { text: "1.500" }, "en")).toBeUndefined();
    expect(valueProblem("number", stored as VariationDraft, "de")).toBeUndefined();
  });

  it("reject keys that repeat or are no keys, and a list without any", () => {
    const problems = variationProblems(
      "string",
      [draft("a", ""), { ...draft("a", ""), uid: "b" }, draft("-x", "")],
      "en",
    );
    expect([...problems.keys()]).toEqual(["a/key", "b/key", "-x/key"]);
    expect([...variationProblems("string", [], "en").keys()]).toEqual([allKey]);
  });

  it("reject a value over 64 KiB, and values over 256 KiB together", () => {
    const large = "ä".repeat(32_800);
    expect(variationProblems("string", [draft("a", large)], "en").has("a/value")).toBe(true);
    const many = ["a", "b", "c", "d", "e"].map((key) => draft(key, "x".repeat(60_000)));
    expect([...variationProblems("string", many, "en").keys()]).toEqual([allKey]);
  });
});

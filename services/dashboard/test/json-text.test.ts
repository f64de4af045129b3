import { describe, expect, it } from "@jest/globals";
import {
  compactJson,
  elementsOf,
  jsonProblem,
  membersOf,
  prettyJson,
} from "../src/variations/json-text.ts";

describe("JSON text", () => {
  it.each([
    "{}",
    ' { "a" : [ 1.0 , -0.5e-3, "é\\u00e9\\n", true, null, [] ] } ',
    '{"__proto__":{"10":1,"2":2},"a":9007199254740991}',
  ])("accepts %s", (text) => {
    expect(jsonProblem(text)).toBeUndefined();
  });

  it.each([
    ["", 1, 1, "expected a value"],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, "expected a comma or }"],
    ['{"a": 1,}', 1, 9, "expected the name of a member, in double quotes"],
    ["{'a': 1}", 1, 2, "expected the name of a member, in double quotes"],
    ['{"a" 1}', 1, 6, "expected a colon"],
    ['{"a": [1 2]}', 1, 10, "expected a comma or ]"],
    ['{"a": 01}', 1, 8, "expected a comma or }"],
    ['{"a": "\t"}', 1, 7, "expected a value"],
    ['{"a": 1, "a": 2}', 1, 10, 'the member "a" occurs twice'],
    ['{"a": 1, "\\u0061": 2}', 1, 10, 'the member "\\u0061" occurs twice'],
    ['{"a": 1e999}', 1, 7, "this number is too large"],
    [
      '{"a": 9007199254740992}',
      1,
      7,
      "integers are at most 9007199254740991. Use a text for a longer one",
    ],
    ['{"a": "\\ud800"}', 1, 7, "texts must not contain NUL characters or broken Unicode"],
    ['{"a": "\\u0000"}', 1, 7, "texts must not contain NUL characters or broken Unicode"],
    ["{} {}", 1, 4, "expected the end of the value"],
  ])("names the place of the problem in %j", (text, line, column, problem) => {
    expect(jsonProblem(text)).toEqual({ line, column, text: problem });
  });

  it("accepts 20 levels, and not 21", () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    expect(jsonProblem(nested(20))).toBeUndefined();
    expect(jsonProblem(nested(21))?.text).toBe("at most 20 levels");
  });

  it("formats without a change of any number, text or order", () => {
    const compact = '{"b":[1.0,{"c":{}}],"10":"a, b: {}","2":[]}';
    const pretty = prettyJson(compact);
    expect(pretty).toBe(
      '{\n  "b": [\n    1.0,\n    {\n      "c": {}\n    }\n  ],\n  "10": "a, b: {}",\n  "2": []\n}',
    );
    expect(compactJson(pretty)).toBe(compact);
  });

  it("reads the texts of members and elements", () => {
    const members = membersOf('{ "a": [1.0, {"b": 2}], "__proto__": "x" }');
    expect([...members]).toEqual([
      ["a", '[1.0,{"b":2}]'],
      ["__proto__", '"x"'],
    ]);
    expect(elementsOf(members.get("a") ?? "")).toEqual(["1.0", '{"b":2}']);
    expect(elementsOf("[]")).toEqual([]);
  });
});

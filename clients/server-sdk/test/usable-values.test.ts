import { describe, expect, test } from "@jest/globals";
import { parseRules } from "../src/rules/parse-rules.ts";
import { environmentId } from "./support/fake-edge.ts";

const boolean = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 1 };
const typed = {
  ...boolean,
  value_type: "string",
  variations: [{ key: "blue", value: "#00f" }],
  serve: { variation: "blue" },
  off_variation: null,
};
const withValue = (value_type: string, value: unknown) => ({
  ...typed,
  value_type,
  variations: [{ key: "blue", value }],
});
const withServe = (serve: unknown) => ({ ...typed, serve });

/** Returns an object with this number of levels. */
function nested(levels: number): object {
  let value = {};
  for (let level = 1; level < levels; level += 1) value = { value };
  return value;
}

function isAccepted(flag: unknown): boolean {
  const data = { format: 2, environment_id: environmentId, flags: { flag } };
  return parseRules(JSON.stringify(data)).ok;
}

describe("a rule set", () => {
  test.each<[string, unknown]>([
    ["a boolean flag with its type", { ...boolean, value_type: "boolean" }],
    ["a typed flag", typed],
    ["an object of 64 levels", withValue("object", nested(64))],
    ["a variation that does not exist", withServe({ variation: "gone" })],
    ["a split", withServe({ split: [{ variation: "blue", weight: 100, ranges: [[0, 10_000]] }] })],
    ["an empty split", withServe({ split: [] })],
    ["a typed flag without what it serves", withServe(undefined)],
    ["a rule that is null", { ...typed, targeting_rules: [null] }],
  ])("with %s is accepted", (_, flag) => {
    expect(isAccepted(flag)).toBe(true);
  });

  test.each<[string, unknown]>([
    ["a typed flag without variations", { ...typed, variations: undefined }],
    ["an empty list of variations", { ...typed, variations: [] }],
    ["variations that are no list", { ...typed, variations: {} }],
    ["a boolean flag with variations", { ...boolean, variations: typed.variations }],
    ["a variation that is null", { ...typed, variations: [null] }],
    ["a variation without a key", { ...typed, variations: [{ value: "a" }] }],
    ["a variation without a value", { ...typed, variations: [{ key: "a" }] }],
    ["a number in a text flag", withValue("string", 5)],
    ["a text in a number flag", withValue("number", "5")],
    ["null in a number flag", withValue("number", null)],
    ["an array in an object flag", withValue("object", [])],
    ["null in an object flag", withValue("object", null)],
    ["an object of 65 levels", withValue("object", nested(65))],
    ["a value type that is no text", { ...typed, value_type: 5 }],
    ["an off variation that is no text", { ...typed, off_variation: 5 }],
    ["serve that is null", withServe(null)],
    ["serve that is a text", withServe("blue")],
    ["serve that is empty", withServe({})],
    ["a split that is no list", withServe({ split: 5 })],
    ["a share that is null", withServe({ split: [null] })],
    ["a share without ranges", withServe({ split: [{ variation: "blue", weight: 100 }] })],
    ["a range that is a number", withServe({ split: [{ variation: "blue", ranges: [5] }] })],
    ["a range of texts", withServe({ split: [{ variation: "blue", ranges: [["0", "5"]] }] })],
    [
      "a rule whose serve is a text",
      { ...typed, targeting_rules: [{ conditions: [], serve: "a" }] },
    ],
    [
      "a boolean flag with a rule whose serve is a text",
      { ...boolean, targeting_rules: [{ conditions: [], serve: "a" }] },
    ],
  ])("with %s is rejected", (_, flag) => {
    expect(isAccepted(flag)).toBe(false);
  });
});

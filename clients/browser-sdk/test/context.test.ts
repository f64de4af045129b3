import { expect, it } from "@jest/globals";
import { asciiJson, readContext } from "../src/context.ts";

it.each([
  ["attributes in the order of their names", { b: 1, a: true }, '{"a":true,"b":1}'],
  [
    "names of the id, which the edge compares",
    { user_id: "u", id: "i" },
    '{"id":"i","user_id":"u"}',
  ],
  ["a number as the id", { id: 42 }, '{"id":42}'],
  ["nothing for null and undefined", { a: null, b: undefined, id: null }, "{}"],
  ["no context", undefined, "{}"],
  ["arrays", { tags: ["a", 1, false] }, '{"tags":["a",1,false]}'],
])("reads %s", (_, context, json) => {
  expect(readContext(context)).toEqual({ json, hasInvalid: false });
});

it.each([
  ["objects", { a: { b: 1 }, c: 1 }, '{"c":1}'],
  ["elements that are objects", { a: [1, {}] }, '{"a":[1]}'],
  ["numbers that JSON does not have", { a: Number.NaN, id: Number.POSITIVE_INFINITY }, "{}"],
  ["an id of another type", { id: true, user_id: ["u"], a: true }, '{"a":true}'],
  ["functions, symbols and large integers", { a: () => 1, b: Symbol("s"), c: 1n }, "{}"],
  ["an array", ["a"], "{}"],
  ["a text", "a user", "{}"],
])("ignores %s", (_, context, json) => {
  expect(readContext(context)).toEqual({ json, hasInvalid: true });
});

it("escapes characters beyond printable ASCII, with the same meaning", () => {
  const json = JSON.stringify({ text: "ä€🗼\u007f\u2028\ud800" });
  expect(asciiJson(json)).toMatch(/^[\x20-\x7e]*$/);
  expect(JSON.parse(asciiJson(json))).toEqual(JSON.parse(json));
});

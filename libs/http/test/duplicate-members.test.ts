import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { hasDuplicateMembers } from "../src/index.ts";

const isFound = (text: string) => hasDuplicateMembers(text, JSON.parse(text));

describe("given a JSON text", () => {
  it("finds no duplicate in any serialized value", () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false }), fc.constantFrom(0, 2), (text, space) => {
        expect(isFound(JSON.stringify(JSON.parse(text), undefined, space))).toBe(false);
      }),
    );
  });

  it("finds a member that is repeated at the end of any object", () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), fc.jsonValue(), (name, one, other) => {
        const member = (value: unknown) => `${JSON.stringify(name)}:${JSON.stringify(value)}`;
        expect(isFound(`[1,{${member(one)} , ${member(other)}}]`)).toBe(true);
      }),
    );
  });

  it.each([
    ["two spellings of one name", '{"a":1,"\\u0061":2}', true],
    ["colons and quotes in strings", '{"a:\\"b":":\\\\","c":"\\\\\\":"}', false],
    ["__proto__ twice", '{"__proto__":1,"__proto__":2}', true],
    ["__proto__ once", '{"__proto__":{"a":1}}', false],
    ["the same name in two objects", '[{"a":1},{"a":2}]', false],
    ["a string", '"{\\"a\\":1,\\"a\\":2}"', false],
    ["null", "null", false],
  ])("checks %s", (_what, text, expected) => {
    expect(isFound(text)).toBe(expected);
  });

  it("is not limited by the call stack", () => {
    const depth = 200_000;
    expect(isFound(`${"[".repeat(depth)}{"a":1,"a":1}${"]".repeat(depth)}`)).toBe(true);
  });
});

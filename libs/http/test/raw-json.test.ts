import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { elementTexts, memberText, RawJson, stringify, tokensOf } from "../src/index.ts";

describe("a value as JSON text", () => {
  it("is serialized unchanged, wherever it is in a body", () => {
    const raw = new RawJson('{"2":1.0,"1":1e1,"a":"\\u0041"}');
    expect(stringify({ one: raw, more: [raw, { raw }] })).toBe(
      `{"one":${raw.text},"more":[${raw.text},{"raw":${raw.text}}]}`,
    );
  });

  it("leaves bodies without such values as they are", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(stringify(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it("is the parsed value for other serializers", () => {
    expect(JSON.stringify(new RawJson(" [1.0] "))).toBe("[1]");
  });
});

describe("the parts of a JSON text", () => {
  it("are found by name and position, with any white space", () => {
    const spaces = fc.constantFrom("", " ", "\n", "\t ");
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), spaces, (object, space) => {
        const members = Object.entries(object).map(
          ([name, value]) =>
            `${space}${JSON.stringify(name)}${space}:${space}${JSON.stringify(value)}${space}`,
        );
        const text = `${space}{${members.join(",")}}`;
        for (const [name, value] of Object.entries(object))
          expect(memberText(text, name)).toBe(JSON.stringify(value));
        expect(memberText(text, "no such member \u0000")).toBeUndefined();
        expect(tokensOf(text).join("")).toBe(JSON.stringify(object));
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), spaces, (array, space) => {
        const text = `[${array.map((value) => space + JSON.stringify(value) + space).join(",")}]`;
        expect(elementTexts(text)).toEqual(array.map((value) => JSON.stringify(value)));
      }),
    );
  });

  it("are none for values of another kind", () => {
    expect(memberText("[1]", "a")).toBeUndefined();
    expect(elementTexts("{}")).toEqual([]);
    expect(elementTexts(" [ ] ")).toEqual([]);
  });
});

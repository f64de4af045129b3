import { describe, expect, it } from "@jest/globals";
import { Email } from "../src/http/fields.ts";
import { compileCheck } from "../src/index.ts";
import { Name, RuleName } from "../src/name.ts";

/** Returns every character that matches. */
const charactersOf = (pattern: RegExp): string[] =>
  Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter((character) =>
    pattern.test(character),
  );

const nameOf = (character: string) => `U+${character.codePointAt(0)?.toString(16)}`;

/** Invisible characters, except the variation selectors that emoji and Mongolian need. */
const invisible = charactersOf(/[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u).filter(
  (character) => !/[\u180b-\u180d\u180f\ufe00-\ufe0f]/u.test(character),
);

const checkName = compileCheck(Name);
const checkRuleName = compileCheck(RuleName);
const checkEmail = compileCheck(Email);

describe("given two texts that look equal", () => {
  it("rejects the name with an invisible character", () => {
    const accepted = invisible.filter((character) => checkName(`a${character}b`).ok);
    expect(accepted.map(nameOf)).toEqual([]);
  });

  it("rejects the name of a rule with an invisible character", () => {
    const accepted = invisible.filter((character) => checkRuleName(`a${character}b`).ok);
    expect(accepted.map(nameOf)).toEqual([]);
  });

  it("rejects the e-mail address with an invisible, formatting or private character", () => {
    const unprintable = charactersOf(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\s]/u);
    const accepted = [...invisible, ...unprintable].filter((character) =>
      [`a${character}@b.com`, `a@${character}b.com`].some((address) => checkEmail(address).ok),
    );
    expect(accepted.map(nameOf)).toEqual([]);
  });
});

describe("given text in any script", () => {
  it.each(["Ä ö", "日本語", "한국어", "ＡＢ", "עברית", "فارسی", "हिन्दी", "❤️ 🎉", "𠮷野家", "𝒳"])(
    "accepts the name %s",
    (name) => {
      expect(checkName(name).ok).toBe(true);
      expect(checkRuleName(name).ok).toBe(true);
      expect(checkEmail(`${name.replace(" ", "")}@example.com`).ok).toBe(true);
    },
  );
});

import { describe, expect, it } from "@jest/globals";
import { foldCase } from "../src/fold-case.ts";
import { isThorough } from "./thorough.ts";

/** `npm test` compares every 16th block of caseless characters with all others, `npm run chaos` every block. */
const fewBlocks = 16;

const lastPoint = 0x10ffff;
const textOf = (point: number) => String.fromCodePoint(point);
const joined = (points: readonly number[]) => points.map(textOf).join("");
const escaped = (point: number) => `\\u{${point.toString(16)}}`;

/** Returns an expression that matches all characters equal to one of these, given in ascending order. */
function classOf(points: readonly number[]): RegExp {
  let ranges = "";
  for (let first = 0, last = 0; first < points.length; first = ++last) {
    while ((points[last + 1] ?? 0) === (points[last] ?? 0) + 1) last++;
    ranges += `${escaped(points[first] ?? 0)}-${escaped(points[last] ?? 0)}`;
  }
  return new RegExp(`[${ranges}]`, "iu");
}

/**
 * All characters that this engine's version of Unicode assigns. The folding of others cannot be compared. Lone
 * surrogates are not characters.
 */
const characters = Array.from({ length: lastPoint + 1 }, (_, point) => point).filter(
  (point) => !/\p{Cn}|\p{Cs}/u.test(textOf(point)),
);

/** Returns whether a character can be equal to another one regardless of case. */
const hasCase = (point: number) =>
  foldCase(textOf(point)) !== textOf(point) || /\p{CWCM}|\p{CWCF}/u.test(textOf(point));

describe("given every character of Unicode, and the engine's /iu, which uses simple folding too", () => {
  it("treats exactly the same characters as equal as the engine", () => {
    const cased = characters.filter(hasCase);
    const text = joined(cased);
    const oursByFolding = new Map<string, string>();
    for (const each of text) {
      const folded = foldCase(each);
      oursByFolding.set(folded, (oursByFolding.get(folded) ?? "") + each);
    }
    const differences = [...text].filter((each) => {
      const engine = text.match(new RegExp(`\\u{${each.codePointAt(0)?.toString(16)}}`, "giu"));
      return engine?.join("") !== oursByFolding.get(foldCase(each));
    });
    expect(differences).toEqual([]);
  });

  it("treats all other characters as characters without case", () => {
    const others = characters.filter((point) => !hasCase(point));
    const text = joined(others);
    let start = 0;
    for (const [block, members] of Map.groupBy(others, (point) => point >> 12)) {
      if (!isThorough && block % fewBlocks !== 0) {
        start += joined(members).length;
        continue;
      }
      // No member of a block of 4,096 equals a character of another block.
      const end = start + joined(members).length;
      expect(classOf(members).exec(text.slice(0, start) + text.slice(end))).toBeNull();
      start = end;
      // No member equals another member of the same block: any two differ in some bit of their code points.
      for (let bit = 0; bit < 12; bit++) {
        const withBit = members.filter((point) => (point >> bit) & 1);
        const without = members.filter((point) => !((point >> bit) & 1));
        expect(classOf(withBit).exec(joined(without))).toBeNull();
      }
    }
    expect(foldCase(text)).toBe(text);
  });
});

describe("given texts whose folding differs from their lower case, or is easy to get wrong", () => {
  it.each([
    ["ſ", "s"],
    ["\u212a", "k"],
    ["ς", "σ"],
    ["ẞ", "ß"],
    ["ΣΑΣ", "σασ"],
    ["Ꭰ", "Ꭰ"],
    ["\uab70", "Ꭰ"],
    ["𐐀x𐐀", "𐐨x𐐨"],
    ["\ufb05", "\ufb06"],
    ["\ud801A\udc00", "\ud801a\udc00"],
  ])("folds %j to %j", (text, folded) => {
    expect(foldCase(text)).toBe(folded);
  });

  it.each(["ß", "İ", "ı", "e\u0301", " ", ""])("leaves %j unchanged", (text) => {
    expect(foldCase(text)).toBe(text);
  });

  it("preserves the number and positions of characters", () => {
    expect(foldCase("İSTANBUL STRASSE ẞ É")).toBe("İstanbul strasse ß é");
  });
});

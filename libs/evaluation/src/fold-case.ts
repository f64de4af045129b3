/**
 * Folds a text by Unicode simple case folding (CaseFolding.txt, status C and S), code point by code point. Two texts
 * are equal regardless of case exactly if their foldings are equal. The text is not normalized, trimmed or lengthened.
 *
 * `toLowerCase` has two exceptions: it turns \u0130 into two characters, and some lowercase letters fold to another
 * letter. The folding of letters that a later version of Unicode adds depends on the version of the engine.
 */
export function foldCase(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  return text
    .split("\u0130")
    .map((part) => part.toLowerCase().replace(lowercaseWithFolding, foldLowercase))
    .join("\u0130");
}

/** A loop, because starting a regular expression takes longer than reading a short text. */
function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

/** Lowercase letters, each followed by its folding. */
const foldings = new Map(
  [
    "\u00b5\u03bc \u017fs \u0345\u03b9 \u03c2\u03c3 \u03d0\u03b2 \u03d1\u03b8 \u03d5\u03c6 \u03d6\u03c0 \u03f0\u03ba \u03f1\u03c1 \u03f5\u03b5",
    "\u1c80\u0432 \u1c81\u0434 \u1c82\u043e \u1c83\u0441 \u1c84\u0442 \u1c85\u0442 \u1c86\u044a \u1c87\u0463 \u1c88\ua64b",
    "\u1e9b\u1e61 \u1fbe\u03b9 \u1fd3\u0390 \u1fe3\u03b0 \ufb05\ufb06",
  ]
    .join(" ")
    .split(" ")
    .map(([letter = "", folded = ""]) => [letter, folded] as const),
);

/** The keys of `foldings`, and the lowercase letters of Cherokee, which fold to uppercase. */
const lowercaseWithFolding = new RegExp(
  `[${[...foldings.keys()].join("")}\u13f8-\u13fd\uab70-\uabbf]`,
  "g",
);

function foldLowercase(letter: string): string {
  return foldings.get(letter) ?? letter.toUpperCase();
}

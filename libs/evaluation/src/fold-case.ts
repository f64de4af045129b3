import { foldTable } from "./fold-table.ts";

const folded = new Map<number, number>();
for (const [first, last, every, add] of foldTable) {
  for (let point = first; point <= last; point += every) folded.set(point, point + add);
}

/**
 * The text by Unicode simple case folding, code point by code point: two texts are equal regardless of
 * case exactly when these are equal. Nothing is normalized, trimmed or made longer.
 */
export function foldCase(text: string): string {
  let hasCapital = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return foldPoints(text);
    if (unit >= 0x41 && unit <= 0x5a) hasCapital = true;
  }
  // In ASCII the engine's lower case and the folding are the same.
  return hasCapital ? text.toLowerCase() : text;
}

function foldPoints(text: string): string {
  let result = "";
  let copied = 0;
  for (let i = 0; i < text.length; ) {
    const point = text.codePointAt(i) ?? 0;
    const units = point > 0xffff ? 2 : 1;
    const target = folded.get(point);
    if (target !== undefined) {
      result += text.slice(copied, i) + String.fromCodePoint(target);
      copied = i + units;
    }
    i += units;
  }
  return copied === 0 ? text : result + text.slice(copied);
}

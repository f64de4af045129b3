/** Regular expression for a decimal number, for JSON Schema. */
export const numberPattern = "^[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?$";

const shape = new RegExp(numberPattern);

/**
 * Parses a decimal number. Returns NaN, for which every comparison is false, if the text is not one. Stricter than
 * `Number`: rejects white space, hexadecimal, "Infinity" and numbers beyond the range of a double. Lenient parsers
 * differ between languages, so that SDKs with local evaluation would get other results.
 */
export function parseNumber(text: string): number {
  if (!shape.test(text)) return Number.NaN;
  const number = Number(text);
  return Number.isFinite(number) ? number : Number.NaN;
}

/** A number in decimal, as a regular expression of JSON Schema. */
export const numberPattern = "^[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?$";

const shape = new RegExp(numberPattern);

/**
 * The number that a text writes in decimal, or NaN, which compares with nothing, when it writes none.
 * Stricter than `Number`: no white space, no hexadecimal, no "Infinity", no number beyond a double. Lenient parsers
 * differ between languages, so SDKs that evaluate flags themselves would get other results.
 */
export function parseNumber(text: string): number {
  if (!shape.test(text)) return Number.NaN;
  const number = Number(text);
  return Number.isFinite(number) ? number : Number.NaN;
}

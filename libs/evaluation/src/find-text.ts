/**
 * Length of a needle from which the engine's own search could be made to stall: in the worst case it takes as many
 * steps as the product of both lengths, 0.2 s for 10,000 characters in 64 KiB. The test of linear time (texts that
 * nearly contain a long one) fails without the other search.
 */
const longNeedle = 64;

/** A search for one text in others, in time linear in their lengths. */
export function finderOf(needle: string): (text: string) => boolean {
  if (needle.length < longNeedle) return (text) => text.includes(needle);
  const borders = bordersOf(needle);
  return (text) => text.length >= needle.length && findWith(needle, borders, text);
}

/**
 * For each beginning of the needle, how long the longest shorter beginning is that it also ends with
 * (Knuth, Morris and Pratt): after a mismatch the search goes on from there and never looks back in the
 * text.
 */
function bordersOf(needle: string): Int32Array {
  const borders = new Int32Array(needle.length);
  let length = 0;
  for (let i = 1; i < needle.length; i++) {
    const unit = needle.charCodeAt(i);
    while (length > 0 && needle.charCodeAt(length) !== unit) length = borders[length - 1] ?? 0;
    if (needle.charCodeAt(length) === unit) length++;
    borders[i] = length;
  }
  return borders;
}

function findWith(needle: string, borders: Int32Array, text: string): boolean {
  let matched = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    while (matched > 0 && needle.charCodeAt(matched) !== unit) matched = borders[matched - 1] ?? 0;
    if (needle.charCodeAt(matched) === unit) matched++;
    if (matched === needle.length) return true;
  }
  return false;
}

/**
 * Minimum length of a needle that is searched by `findWith`. The engine's own search takes as many steps as the product
 * of both lengths in the worst case: 0.2 s for 10,000 characters in 64 KiB. The linear-time test fails with it.
 */
const longNeedle = 64;

/** Returns a function that searches texts for the needle, in time linear in their lengths. */
export function finderOf(needle: string): (text: string) => boolean {
  if (needle.length < longNeedle) return (text) => text.includes(needle);
  const borders = bordersOf(needle);
  return (text) => text.length >= needle.length && findWith(needle, borders, text);
}

/**
 * Computes the failure function of Knuth, Morris and Pratt: for each prefix of the needle, the length of its longest
 * proper prefix that is also its suffix. After a mismatch the search resumes there and never rereads the text.
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

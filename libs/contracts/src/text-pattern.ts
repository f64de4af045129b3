/**
 * Parts of patterns. Tools for other languages read the patterns in the OpenAPI document, so they contain ranges instead
 * of `\p{…}`, which Python and others do not support. Characters beyond the BMP are themselves in a pattern, because
 * languages escape them differently. A range that begins with one would be a syntax error without the flag `u`.
 */

/** Control characters. */
export const control = "\\x00-\\x1f\\x7f-\\x9f";

/** Halves of surrogate pairs, which UTF-8 cannot encode. With the flag `u`, pairs do not match. */
export const loneSurrogate = "\\ud800-\\udfff";

/** Returns the characters from one code point to another. */
const each = (first: number, last: number): string =>
  String.fromCodePoint(...Array.from({ length: last - first + 1 }, (_, index) => first + index));

/**
 * Characters that make a text look like another one: they show nothing, or reorder the text around them. They are those
 * that Unicode calls default ignorable, and separators of lines. They include the joiners of composed emoji (decision
 * 0096), but not the variation selectors of emoji and Mongolian.
 */
export const deceptive = `\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb${each(0x1bca0, 0x1bca3)}${each(0x1d173, 0x1d17a)}`;

/** Other characters that affect how their neighbors are shown, and those of private use. */
export const formatting = `\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\ue000-\\uf8ff\u{110bd}\u{110cd}${each(0x13430, 0x1343f)}`;

/**
 * Lookahead that rejects the planes above 3. They contain invisible tags, invisible variation selectors and characters of
 * private use. The second range is part of the first, except without the flag `u`.
 */
export const upToPlane3 = "(?=[\\x00-\u{3ffff}\\ue000-\\uffff]*$)";

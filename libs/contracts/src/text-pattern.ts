/**
 * Parts of character classes in patterns. Tools for other languages read the patterns in the OpenAPI document, so they
 * contain ranges instead of `\p{…}`, which Python and others do not support.
 */

/** Control characters. */
export const control = "\\x00-\\x1f\\x7f-\\x9f";

/** Halves of surrogate pairs, which UTF-8 cannot encode. With the flag `u`, pairs do not match. */
export const loneSurrogate = "\\ud800-\\udfff";

/** Characters without a glyph that change how others are shown, and those of private use. */
export const invisible =
  "\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ue000-\\uf8ff\\ufeff\\ufff9-\\ufffb";

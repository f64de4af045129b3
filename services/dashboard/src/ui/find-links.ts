/** A piece of a text. `href` is the address of a link. */
type Piece = { readonly text: string; readonly href?: string };

/** Only these schemes become links, so that a text cannot contain a script. */
const address = /https?:\/\/[^\s<>"]+/gi;

/** Splits a text at the web addresses in it. Punctuation after an address belongs to the sentence. */
export function findLinks(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(address)) {
    const closing = found.includes("(") ? /[.,;:!?'”’]+$/ : /[.,;:!?'”’)\]]+$/;
    const href = found.replace(closing, "");
    if (!URL.canParse(href)) continue;
    pieces.push({ text: text.slice(end, index) }, { text: href, href });
    end = index + href.length;
  }
  return [...pieces, { text: text.slice(end) }].filter((piece) => piece.text !== "");
}

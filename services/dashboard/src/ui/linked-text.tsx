import { findLinks } from "./find-links.ts";

/** A text whose web addresses are links. They open in a new tab, so that unsaved changes are kept. */
export function LinkedText({ text }: { text: string }) {
  return findLinks(text).map((piece, index) =>
    piece.href === undefined ? (
      piece.text
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no state, and one address can occur twice.
      <a key={index} href={piece.href} target="_blank" rel="noopener noreferrer">
        {piece.text}
      </a>
    ),
  );
}

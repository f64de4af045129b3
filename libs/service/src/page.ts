import { createProblem } from "./answer.ts";

/**
 * Lists that are answered page by page. A cursor says what the last item of a page is found by, such as
 * its id; base64url keeps callers from building their own.
 */
export function cursorOf(position: string): string {
  return Buffer.from(position).toString("base64url");
}

/** What a cursor says; undefined where that is no position, or said otherwise than we say it. */
export function readCursor(
  cursor: string,
  isPosition: (text: string) => boolean,
): string | undefined {
  const position = Buffer.from(cursor, "base64url").toString();
  return cursorOf(position) === cursor && isPosition(position) ? position : undefined;
}

/** The id that a cursor says, where items are found by theirs. */
export function idOfCursor(cursor: string): string | undefined {
  return readCursor(cursor, isId);
}

function isId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}

export const noSuchCursor = createProblem(
  "VALIDATION_001",
  "/cursor must be the `next_cursor` of an earlier answer.",
);

/** A page of what was found. One more than its limit was looked for: that tells whether there is another. */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  positionOf: (item: Item) => string,
): { items: Item[]; nextCursor: string | null } {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last === undefined ? null : cursorOf(positionOf(last)) };
}

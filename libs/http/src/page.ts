import { createProblem } from "./answer.ts";

/**
 * Returns the cursor for a position in a paginated list, such as the id of the last item of a page. It is opaque
 * (base64url), so that clients do not build their own.
 */
export function cursorOf(position: string): string {
  return Buffer.from(position).toString("base64url");
}

/** Returns the position in a cursor; undefined if it contains no position, or is not encoded like `cursorOf` does. */
export function readCursor(
  cursor: string,
  isPosition: (text: string) => boolean,
): string | undefined {
  const position = Buffer.from(cursor, "base64url").toString();
  return cursorOf(position) === cursor && isPosition(position) ? position : undefined;
}

/** Returns the id in a cursor, for lists whose positions are ids. */
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

/** Returns a page of the found items. The caller queries one item more than the limit, to detect another page. */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  positionOf: (item: Item) => string,
): { items: Item[]; nextCursor: string | null } {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last === undefined ? null : cursorOf(positionOf(last)) };
}

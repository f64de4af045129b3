import type { LinkProps } from "@tanstack/react-router";
import type { ListedFlag } from "../flags/flag-search.ts";

/** A result of the search: a page, or a flag. */
export type Result = {
  /** The path of the page. For a flag, with its key. */
  readonly path: string;
  /** The name of the page, or the key of the flag. */
  readonly title: string;
  /** The name of the flag, or nothing. */
  readonly note: string;
  readonly flag?: ListedFlag;
  readonly page?: SearchedPage;
};

export type SearchedPage = { readonly to: NonNullable<LinkProps["to"]>; readonly label: string };

/** Results that the dialog shows. More words find the others. */
const maxResults = 20;

/**
 * Returns the pages and flags that contain all words. The best matches are first: keys and names that begin with the
 * text, then those that contain it. Archived flags are last.
 */
export function findResults(
  text: string,
  pages: readonly SearchedPage[],
  flags: readonly ListedFlag[],
): readonly Result[] {
  const query = text.trim().toLowerCase();
  const words = query.split(/\s+/).filter(Boolean);
  const foundPages = pages
    .filter(({ label }) => label.toLowerCase().includes(query))
    .map((page) => ({ path: page.to, title: page.label, note: "", page }));
  const foundFlags = flags
    .map((flag) => ({ flag, rank: rankOf(flag, query, words) }))
    .filter(({ rank }) => rank !== undefined)
    .toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0))
    .map(({ flag }) => ({ path: `/flags/${flag.key}`, title: flag.key, note: flag.name, flag }));
  return [...foundPages, ...foundFlags].slice(0, maxResults);
}

/** Returns the place of a flag among the results, or undefined if it does not match. Lower ranks are first. */
function rankOf(flag: ListedFlag, query: string, words: readonly string[]): number | undefined {
  const key = flag.key.toLowerCase();
  const name = flag.name.toLowerCase();
  const text = `${key} ${name} ${flag.tags.join(" ")}`;
  if (!words.every((word) => text.includes(word))) return undefined;
  const archived = flag.archived_at === null ? 0 : 10;
  if (key === query) return archived;
  if (key.startsWith(query) || name.startsWith(query)) return archived + 1;
  return archived + (key.includes(query) || name.includes(query) ? 2 : 3);
}

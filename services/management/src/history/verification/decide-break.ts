import type { Break, ChainPlace, Link } from "./link.ts";

/**
 * Follows chains link by link, in order, and knows no more of them than the last two links, so that a
 * history of any length can be walked. A chain's first break is what is told; what comes after it in
 * the same chain is not looked at.
 *
 * A link that does not follow the one before it is a suspect until the next one is seen: when that one
 * follows the one before, the suspect was put in between; otherwise something between is gone.
 */
export type Walk =
  | { at: "start" }
  | { at: "link"; last: Link }
  | { at: "suspect"; last: Link; suspect: Link }
  | { at: "broken"; place: ChainPlace };

export function follow(walk: Walk, link: Link): { walk: Walk; breaks: Break[] } {
  if (walk.at === "start" || !isSamePlace(placeOf(walk), link)) {
    const first = begin(link);
    return { walk: first.walk, breaks: [...finish(walk), ...first.breaks] };
  }
  switch (walk.at) {
    case "broken":
      return { walk, breaks: [] };
    case "suspect":
      return link.previousHash === walk.last.hash
        ? broken({ place: link, kind: "inserted", entry: walk.suspect, next: link })
        : broken(missingBetween(walk));
    case "link":
      return step(walk.last, link);
  }
}

/** What is still to be told when no more links come. */
export function finish(walk: Walk): Break[] {
  return walk.at === "suspect" ? [missingBetween(walk)] : [];
}

function begin(link: Link): { walk: Walk; breaks: Break[] } {
  if (!link.intact) return broken({ place: link, kind: "changed", entry: link });
  if (link.previousHash !== link.removedHash)
    return broken({ place: link, kind: "missing_before", entry: link });
  if (!link.isOfKnownFlag) return broken({ place: link, kind: "flag_unknown" });
  return { walk: { at: "link", last: link }, breaks: [] };
}

function step(last: Link, link: Link): { walk: Walk; breaks: Break[] } {
  if (!link.intact) return broken({ place: link, kind: "changed", entry: link });
  if (link.previousHash === last.hash || followsRemoved(link))
    return { walk: { at: "link", last: link }, breaks: [] };
  if (link.previousHash === last.previousHash)
    return broken({ place: link, kind: "inserted", entry: last, next: link });
  return { walk: { at: "suspect", last, suspect: link }, breaks: [] };
}

/** Retention removed the last link that was seen, and those up to this one, after they were read. */
function followsRemoved({ previousHash, removedHash }: Link): boolean {
  return removedHash !== "" && previousHash === removedHash;
}

function broken(found: Break): { walk: Walk; breaks: Break[] } {
  return { walk: { at: "broken", place: found.place }, breaks: [found] };
}

function missingBetween({ last, suspect }: { last: Link; suspect: Link }): Break {
  return { place: suspect, kind: "missing_between", entry: last, next: suspect };
}

function placeOf(walk: Exclude<Walk, { at: "start" }>): ChainPlace {
  return walk.at === "broken" ? walk.place : walk.last;
}

export function isSamePlace(one: ChainPlace, other: ChainPlace): boolean {
  return one.flagId === other.flagId && one.environmentId === other.environmentId;
}

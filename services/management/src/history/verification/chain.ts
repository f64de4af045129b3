/** Where a chain of entries belongs: a flag's state in an environment. */
export type ChainPlace = { flagId: string; environmentId: string };

/** An entry of the history as a link of its chain. Hashes are in hexadecimal. */
export type Link = ChainPlace & {
  id: string;
  sequence: number;
  changedAt: Date;
  /** Empty for the first link. */
  previousHash: string;
  hash: string;
  /** Whether the hash is that of what the entry says. */
  intact: boolean;
  /** The hash of the newest entry of the chain that retention removed; empty where it removed none. */
  removedHash: string;
  /** Number of entries of the chain that retention removed. */
  removedEntries: number;
  /** True if its flag exists or a deletion is recorded. Looked up for first links only. */
  isOfKnownFlag: boolean;
};

/** An entry as it is named to people. */
export type NamedEntry = { id: string; changedAt: Date };

/** What is wrong with a chain, at the first place where it is. */
export type Break = { place: ChainPlace } & (
  | { kind: "changed"; entry: NamedEntry }
  | { kind: "inserted"; entry: NamedEntry; next: NamedEntry }
  | { kind: "missing_before"; entry: NamedEntry }
  | { kind: "missing_between"; entry: NamedEntry; next: NamedEntry }
  | { kind: "no_history" }
  | { kind: "newest_differs"; entry: NamedEntry }
  | { kind: "no_state" }
  | { kind: "no_history_of_deleted" }
  | { kind: "newest_differs_from_deleted"; entry: NamedEntry }
  | { kind: "flag_unknown" }
  | { kind: "not_audited"; entry: NamedEntry }
  | { kind: "no_history_of_ended" }
  | { kind: "newest_differs_from_ended"; entry: NamedEntry }
  | { kind: "ended_with_state" }
  | { kind: "anchored_missing"; entry: NamedEntry }
);

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

/** How people call the place of a chain; null for what is nowhere to be found. */
export type PlaceNames = {
  flagKey: string | null;
  environment: string | null;
  project: string | null;
};

/** What is wrong, for people: where, with names and ids, and what must have happened. */
export function describeBreak(found: Break, names: PlaceNames): string {
  return `${describePlace(found.place, names)}\n  ${whatHappened(found)}`;
}

function describePlace(place: ChainPlace, names: PlaceNames): string {
  const named = (name: string | null, id: string) =>
    name === null ? `of unknown name (${id})` : `${name} (${id})`;
  const project = names.project === null ? "" : ` of the project ${names.project}`;
  return `Flag ${named(names.flagKey, place.flagId)}, environment ${named(names.environment, place.environmentId)}${project}:`;
}

function whatHappened(found: Break): string {
  switch (found.kind) {
    case "changed":
      return `Entry ${named(found.entry)} was changed: what it says does not fit its hash.`;
    case "inserted":
      return `Entry ${named(found.entry)} was put in afterwards: the entry after it, ${named(found.next)}, was written when it was not there.`;
    case "missing_before":
      return `The beginning is missing: the oldest entry that is there, ${named(found.entry)}, was not the first.`;
    case "missing_between":
      return `At least one entry is missing, or out of its order, between ${named(found.entry)} and ${named(found.next)}.`;
    case "no_history":
      return "The state has no history: all its entries are missing.";
    case "newest_differs":
      return `The newest entry, ${named(found.entry)}, is not what the state is now: newer entries are missing, or the entry was added or the state changed by hand.`;
    case "no_state":
      return "The flag has no state here: it was removed by hand.";
    case "no_history_of_deleted":
      return "The flag was deleted, as the audit log says, and all its entries are missing.";
    case "newest_differs_from_deleted":
      return `The newest entry, ${named(found.entry)}, is not what the flag was when it was deleted, as the audit log says: newer entries are missing, or the entry was added by hand.`;
    case "not_audited":
      return `The newest entry, ${named(found.entry)}, is not the last change in the audit log: newer entries were removed, or the entry was added, together with a change of the state.`;
    case "no_history_of_ended":
      return "The flag was deleted with its project or environment, and all its entries are missing.";
    case "newest_differs_from_ended":
      return `The newest entry, ${named(found.entry)}, is not the one that was recorded when the project or environment was deleted.`;
    case "ended_with_state":
      return "The end of the history is recorded, as for a deleted project or environment, but the flag has a state here.";
    case "anchored_missing":
      return `Entry ${named(found.entry)}, which was the newest in the file of heads, is missing or was changed, and no removal of it is recorded.`;
    case "flag_unknown":
      return "There are entries, but neither is the flag there, nor does the audit log say that it was deleted.";
  }
}

function named({ id, changedAt }: NamedEntry): string {
  return `${id} of ${changedAt.toISOString()}`;
}

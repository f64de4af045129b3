/** Where a chain of entries belongs: a flag's state in an environment. */
export type ChainScope = { flagId: string; environmentId: string };

/** An entry of the history as a link of its chain. Hashes are in hexadecimal. */
export type Link = ChainScope & {
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
export type Break = { scope: ChainScope } & (
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
  | { at: "broken"; scope: ChainScope };

export function follow(walk: Walk, link: Link): { walk: Walk; breaks: Break[] } {
  if (walk.at === "start" || !isSameScope(scopeOf(walk), link)) {
    const first = begin(link);
    return { walk: first.walk, breaks: [...finish(walk), ...first.breaks] };
  }
  switch (walk.at) {
    case "broken":
      return { walk, breaks: [] };
    case "suspect":
      return link.previousHash === walk.last.hash
        ? broken({ scope: link, kind: "inserted", entry: walk.suspect, next: link })
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
  if (!link.intact) return broken({ scope: link, kind: "changed", entry: link });
  if (link.previousHash !== link.removedHash)
    return broken({ scope: link, kind: "missing_before", entry: link });
  if (!link.isOfKnownFlag) return broken({ scope: link, kind: "flag_unknown" });
  return { walk: { at: "link", last: link }, breaks: [] };
}

function step(last: Link, link: Link): { walk: Walk; breaks: Break[] } {
  if (!link.intact) return broken({ scope: link, kind: "changed", entry: link });
  if (link.previousHash === last.hash || followsRemoved(link))
    return { walk: { at: "link", last: link }, breaks: [] };
  if (link.previousHash === last.previousHash)
    return broken({ scope: link, kind: "inserted", entry: last, next: link });
  return { walk: { at: "suspect", last, suspect: link }, breaks: [] };
}

/** Retention removed the last link that was seen, and those up to this one, after they were read. */
function followsRemoved({ previousHash, removedHash }: Link): boolean {
  return removedHash !== "" && previousHash === removedHash;
}

function broken(found: Break): { walk: Walk; breaks: Break[] } {
  return { walk: { at: "broken", scope: found.scope }, breaks: [found] };
}

function missingBetween({ last, suspect }: { last: Link; suspect: Link }): Break {
  return { scope: suspect, kind: "missing_between", entry: last, next: suspect };
}

function scopeOf(walk: Exclude<Walk, { at: "start" }>): ChainScope {
  return walk.at === "broken" ? walk.scope : walk.last;
}

export function isSameScope(one: ChainScope, other: ChainScope): boolean {
  return one.flagId === other.flagId && one.environmentId === other.environmentId;
}

/** How people call the place of a chain; null for what is nowhere to be found. */
export type ScopeNames = {
  flagKey: string | null;
  environment: string | null;
  project: string | null;
};

/** What is wrong, for people: where, with names and ids, and what must have happened. */
export function describeBreak(found: Break, names: ScopeNames): string {
  return `${describeScope(found.scope, names)}\n  ${whatHappened(found)}`;
}

function describeScope(scope: ChainScope, names: ScopeNames): string {
  const named = (name: string | null, id: string) =>
    name === null ? `of unknown name (${id})` : `${name} (${id})`;
  const project = names.project === null ? "" : ` of the project ${names.project}`;
  return `Flag ${named(names.flagKey, scope.flagId)}, environment ${named(names.environment, scope.environmentId)}${project}:`;
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

/** The flag and the environment of a chain. */
export type ChainScope = { flagId: string; environmentId: string };

/** A history entry as a link of its chain. Hashes are in hexadecimal. */
export type Link = ChainScope & {
  id: string;
  sequence: number;
  changedAt: Date;
  /** Empty for the first link. */
  previousHash: string;
  hash: string;
  /** True if the hash matches the content of the entry. */
  intact: boolean;
  /** Hash of the newest entry of the chain that retention removed, or empty if it removed none. */
  removedHash: string;
  /** Number of entries of the chain that retention removed. */
  removedEntries: number;
  /** True if the flag exists or its deletion is recorded. Determined for the first link of a chain only. */
  isOfKnownFlag: boolean;
};

/** An entry as messages name it. */
export type NamedEntry = { id: string; changedAt: Date };

/** The first problem of a chain. */
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
 * Position of a verification that follows chains link by link, in order. It keeps at most two links, so a history of
 * any length fits into memory. Only the first break of a chain is reported; the rest of the chain is skipped.
 *
 * A link that does not follow its predecessor is a suspect until the next link is read. If the next link follows the
 * predecessor, the suspect was inserted; otherwise an entry between them is missing.
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

/** Returns the break that is pending after the last link. */
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

/** True if retention removed entries up to the predecessor of this link while the chain was being read. */
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

/** Names of the flag, environment and project of a chain. A name is null if it cannot be found. */
export type ScopeNames = {
  flagKey: string | null;
  environment: string | null;
  project: string | null;
};

/** Returns a message about a break: its scope, with names and ids, and the cause. */
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
      return `Entry ${named(found.entry)} was changed: its content does not match its hash.`;
    case "inserted":
      return `Entry ${named(found.entry)} was inserted afterwards: it did not exist when the next entry, ${named(found.next)}, was written.`;
    case "missing_before":
      return `The beginning is missing: the oldest existing entry, ${named(found.entry)}, was not the first.`;
    case "missing_between":
      return `At least one entry is missing, or out of order, between ${named(found.entry)} and ${named(found.next)}.`;
    case "no_history":
      return "The state has no history: all its entries are missing.";
    case "newest_differs":
      return `The newest entry, ${named(found.entry)}, does not match the current state: newer entries are missing, or the entry was added or the state changed by hand.`;
    case "no_state":
      return "The flag has no state here: it was removed by hand.";
    case "no_history_of_deleted":
      return "The audit log records the deletion of the flag, but all its entries are missing.";
    case "newest_differs_from_deleted":
      return `The newest entry, ${named(found.entry)}, does not match the state that the audit log records at the deletion of the flag: newer entries are missing, or the entry was added by hand.`;
    case "not_audited":
      return `The newest entry, ${named(found.entry)}, is not the last change in the audit log: newer entries were removed, or the entry was added, and the state was changed to match.`;
    case "no_history_of_ended":
      return "The flag was deleted with its project or environment, and all its entries are missing.";
    case "newest_differs_from_ended":
      return `The newest entry, ${named(found.entry)}, is not the one that was recorded when the project or environment was deleted.`;
    case "ended_with_state":
      return "The history has a recorded end, as of a deleted project or environment, but the flag has a state here.";
    case "anchored_missing":
      return `Entry ${named(found.entry)}, the newest one in the file of heads, is missing or was changed, and its removal is not recorded.`;
    case "flag_unknown":
      return "The flag has entries, but it does not exist, and the audit log does not record its deletion.";
  }
}

function named({ id, changedAt }: NamedEntry): string {
  return `${id} of ${changedAt.toISOString()}`;
}

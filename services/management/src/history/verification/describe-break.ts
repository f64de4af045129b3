import type { Break, ChainPlace, NamedEntry } from "./link.ts";

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

import type { State } from "../state/flag-state.ts";
import type { Draft } from "./draft.ts";
import type { Part } from "./merge-drafts.ts";

/** A draft with the stored state that it is based on. */
export type Started = {
  readonly draft: Draft;
  /** The stored state. Its rules have the identities that they have in the draft. */
  readonly base: Draft;
  /** The version of the stored state. */
  readonly version: number;
  /** The parts that other people changed too, to other values. The person chooses before the draft is saved. */
  readonly undecided: readonly Part[];
  /** The first base of the draft, if the changes of other people were merged since. */
  readonly firstBase: State | undefined;
};

/** Names the entry of a draft in `sessionStorage`. The entry contains no key, and ends with the tab. */
export const draftKey = (place: { flag: { id: string }; environment: { id: string } }): string =>
  `halyard.draft.${place.flag.id}.${place.environment.id}`;

export function readDraft(storage: Storage, key: string): Started | undefined {
  try {
    const kept = JSON.parse(storage.getItem(key) ?? "null") as Partial<Started> | null;
    const parts = [kept?.draft?.rules, kept?.base?.rules, kept?.undecided];
    return parts.every(Array.isArray) ? (kept as Started) : undefined;
  } catch {
    // Another program or release wrote this entry. The page shows the stored state.
    return undefined;
  }
}

/** Keeps a draft, or removes the kept one if there is none. */
export function writeDraft(storage: Storage, key: string, started: Started | undefined): void {
  try {
    if (started === undefined) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(started));
  } catch {
    // The drafts of this tab exceed the quota of the browser. An older copy must not return in place of this draft.
    storage.removeItem(key);
  }
}

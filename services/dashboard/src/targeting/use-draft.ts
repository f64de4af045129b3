import { useCallback, useEffect, useRef, useState } from "react";
import { useFlagInPage } from "../flags/flag-page.tsx";
import type { FlagState, State } from "../state/flag-state.ts";
import {
  type Draft,
  draftAfterSave,
  draftOf,
  draftOfSaved,
  isInvalid,
  isSameDraft,
  stateOf,
} from "./draft.ts";
import { draftKey, readDraft, type Started, writeDraft } from "./kept-draft.ts";
import { differs, mergeDrafts, type Part, withTheirs } from "./merge-drafts.ts";

export type DraftState = {
  readonly draft: Draft;
  readonly isDirty: boolean;
  /** True if another person has saved a state that is not merged into the draft yet. */
  readonly isOutdated: boolean;
  /** The stored state that the draft is based on, and its version. */
  readonly base: Draft;
  readonly version: number;
  /** The first base of the draft, if the changes of other people were merged since. */
  readonly firstBase: State | undefined;
  /** The parts that this person and another one changed to different values. */
  readonly conflicts: readonly Part[];
  edit: (change: (draft: Draft) => Draft) => void;
  /** Merges the stored state into the draft. */
  merge: () => void;
  /** Ends a conflict with the value of the draft, or with that of the base. */
  decide: (part: Part, choice: "mine" | "theirs") => void;
  /** Returns a function that restores the draft. */
  discard: () => () => void;
  /** Continues from the saved state. Edits made after `sent` was sent remain unsaved changes. */
  restart: (state: FlagState, sent: Draft) => void;
};

/**
 * Keeps a draft of a stored state. Without unsaved changes, the draft follows the stored state. With unsaved changes, it
 * keeps the input and reports when the stored state has a newer version.
 */
export function useDraft(stored: FlagState): DraftState {
  const key = draftKey(useFlagInPage());
  const [started, setStarted] = useState(() => readDraft(sessionStorage, key));
  const active = isActive(started, stored) ? started : startOf(stored);
  const { draft, base, version, undecided } = active;
  const isDirty = hasChanges(active);
  const change = useCallback(
    (next: (before: Started) => Started) =>
      setStarted((before) => next(isActive(before, stored) ? before : startOf(stored))),
    [stored],
  );
  const edit = useCallback(
    (edited: (draft: Draft) => Draft) =>
      change((before) => ({ ...before, draft: edited(before.draft) })),
    [change],
  );
  const drop = useKeptDraft(key, isDirty ? active : undefined);
  return {
    draft,
    base,
    version,
    isDirty,
    isOutdated: isDirty && version < stored.version,
    firstBase: active.firstBase,
    conflicts: undecided.filter((part) => differs(part, draft, base)),
    edit,
    merge: () => change((before) => merged(before, stored)),
    decide: (part, choice) => change((before) => decided(before, part, choice)),
    discard() {
      drop();
      setStarted(undefined);
      return () => setStarted(active);
    },
    restart: (state, sent) =>
      setStarted((before) => ({
        ...startOf(state),
        draft: before === undefined ? draftOf(state) : draftAfterSave(before.draft, sent, state),
        base: draftOfSaved(state, sent),
      })),
  };
}

/**
 * Keeps a draft in the tab while its page is not shown, so that it survives a new sign-in and a reload. Returns a
 * function that ends this, for a person who decides to lose the draft.
 */
function useKeptDraft(key: string, draft: Started | undefined): () => void {
  const latest = useRef(draft);
  useEffect(() => {
    latest.current = draft;
  });
  const hasDraft = draft !== undefined;
  useEffect(() => {
    const write = () => writeDraft(sessionStorage, key, latest.current);
    if (!hasDraft) return write();
    window.addEventListener("pagehide", write);
    return () => {
      window.removeEventListener("pagehide", write);
      write();
    };
  }, [key, hasDraft]);
  return () => {
    latest.current = undefined;
  };
}

function startOf(stored: FlagState): Started {
  const draft = draftOf(stored);
  return { draft, base: draft, version: stored.version, undecided: [], firstBase: undefined };
}

const hasChanges = ({ draft, base }: Started): boolean =>
  isInvalid(draft) || !isSameDraft(draft, base);

/** A draft without changes ends when a newer state is read. */
function isActive(started: Started | undefined, stored: FlagState): started is Started {
  if (started === undefined) return false;
  return started.version >= stored.version || hasChanges(started);
}

function merged(before: Started, saved: FlagState): Started {
  const { draft, base, conflicts } = mergeDrafts({ base: before.base, mine: before.draft, saved });
  return {
    draft,
    base,
    version: saved.version,
    undecided: [...new Set([...before.undecided, ...conflicts])],
    firstBase: before.firstBase ?? stateOf(before.base),
  };
}

function decided(before: Started, part: Part, choice: "mine" | "theirs"): Started {
  return {
    ...before,
    draft: choice === "mine" ? before.draft : withTheirs(before.draft, before.base, part),
    undecided: before.undecided.filter((other) => other !== part),
  };
}

import { useCallback, useState } from "react";
import type { FlagState } from "../api/schema.d.ts";
import { type Draft, draftAfterSave, draftOf, isSame } from "./draft.ts";

type Started = { readonly draft: Draft; readonly base: FlagState };

export type DraftState = {
  readonly draft: Draft;
  readonly isDirty: boolean;
  /** True if another person has saved a state since the draft was started. */
  readonly isOutdated: boolean;
  /** The stored state that the draft started from. */
  readonly base: FlagState;
  edit: (change: (draft: Draft) => Draft) => void;
  discard: () => void;
  /** Continues from the saved state. Edits made after `sent` was sent remain unsaved changes. */
  restart: (state: FlagState, sent: Draft) => void;
  restore: (draft: Draft) => void;
};

/**
 * Keeps a draft of a stored state. Without unsaved changes, the draft follows the stored state. With unsaved changes, it
 * keeps the input and reports when the stored state has a newer version.
 */
export function useDraft(stored: FlagState): DraftState {
  const [started, setStarted] = useState<Started>();
  const active = isActive(started, stored) ? started : undefined;
  const { draft, base } = active ?? { draft: draftOf(stored), base: stored };
  const isDirty = active !== undefined && !isSame(draft, base);
  const edit = useCallback(
    (change: (draft: Draft) => Draft) =>
      setStarted((before) => {
        const from = isActive(before, stored) ? before : { draft: draftOf(stored), base: stored };
        return { ...from, draft: change(from.draft) };
      }),
    [stored],
  );
  return {
    draft,
    base,
    isDirty,
    isOutdated: isDirty && base.version !== stored.version,
    edit,
    discard: () => setStarted(undefined),
    restart: (state, sent) =>
      setStarted((before) => ({
        draft: before === undefined ? draftOf(state) : draftAfterSave(before.draft, sent, state),
        base: state,
      })),
    restore: (discarded) => setStarted({ draft: discarded, base: stored }),
  };
}

/** A draft without changes ends when a newer state is read. */
function isActive(started: Started | undefined, stored: FlagState): started is Started {
  if (started === undefined) return false;
  return started.base.version >= stored.version || !isSame(started.draft, started.base);
}

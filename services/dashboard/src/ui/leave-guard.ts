import { createContext, use, useEffect, useRef } from "react";

/**
 * Content that leaving would lose: a key or secret that is shown only once, changes that are not saved, or a draft. A
 * draft is changes that are not saved and that the tab keeps over a new sign-in.
 */
export const unsavedKinds = ["secret", "changes", "draft"] as const;
export type Unsaved = (typeof unsavedKinds)[number];
/** Content that a question is about. `input` is what was entered in a dialog. */
export type Losable = Unsaved | "input";

type LeaveGuard = {
  /** The content that leaving the page would lose, the first in the order of `unsavedKinds`. */
  unsaved: Unsaved | undefined;
  /** Registers unsaved content. Returns a function that removes it. `lose` runs when the person decides to lose it. */
  hold: (what: Unsaved, lose: () => void) => () => void;
  /** Asks before content is lost. Returns whether to lose it. */
  ask: (what: Losable) => Promise<boolean>;
  /** Asks before unsaved content is lost. Returns whether to leave. */
  mayLeave: () => Promise<boolean>;
};

export const LeaveGuardContext = createContext<LeaveGuard | undefined>(undefined);

export function useLeaveGuard(): LeaveGuard {
  const guard = use(LeaveGuardContext);
  if (guard === undefined) throw new Error("useLeaveGuard needs a LeaveGuardProvider");
  return guard;
}

/**
 * Registers unsaved content of a component while `isUnsaved` is true. `onLost` runs when the person decides to lose it.
 */
export function useUnsaved(
  isUnsaved: boolean,
  what: Unsaved = "changes",
  onLost?: () => void,
): void {
  const { hold } = useLeaveGuard();
  const lose = useRef(onLost);
  useEffect(() => {
    lose.current = onLost;
  });
  useEffect(
    () => (isUnsaved ? hold(what, () => lose.current?.()) : undefined),
    [isUnsaved, what, hold],
  );
}

/** Returns a function that closes a dialog, after a question if that would lose unsaved content. */
export function useAskedClose(close: () => void): () => void {
  const { mayLeave } = useLeaveGuard();
  return () => void mayLeave().then((leaves) => leaves && close());
}

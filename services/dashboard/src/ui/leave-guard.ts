import { createContext, use, useEffect } from "react";

/** Content that leaving would lose: changes that are not saved, or a key or secret that is shown only once. */
export type Unsaved = "changes" | "secret";
/** Content that a question is about. `input` is what was entered in a dialog. */
export type Losable = Unsaved | "input";

type LeaveGuard = {
  /** The content that leaving the page would lose. */
  unsaved: Unsaved | undefined;
  /** Registers unsaved content. Returns a function that removes it. */
  hold: (what: Unsaved) => () => void;
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

/** Registers unsaved content of a component while `isUnsaved` is true. */
export function useUnsaved(isUnsaved: boolean, what: Unsaved = "changes"): void {
  const { hold } = useLeaveGuard();
  useEffect(() => (isUnsaved ? hold(what) : undefined), [isUnsaved, what, hold]);
}

/** Returns a function that closes a dialog, after a question if that would lose unsaved content. */
export function useAskedClose(close: () => void): () => void {
  const { mayLeave } = useLeaveGuard();
  return () => void mayLeave().then((leaves) => leaves && close());
}

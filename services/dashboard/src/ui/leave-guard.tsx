import {
  createContext,
  type ReactNode,
  use,
  useCallback,
  useEffect,
  useMemo,
  useState,
} from "react";
import { Button } from "./button.tsx";
import { Dialog, DialogActions } from "./dialog.tsx";

/** Content that leaving would lose: changes that are not saved, or a key or secret that is shown only once. */
type Unsaved = "changes" | "secret";

type LeaveGuard = {
  /** The content that leaving the page would lose. */
  unsaved: Unsaved | undefined;
  /** Registers unsaved content. Returns a function that removes it. */
  hold: (what: Unsaved) => () => void;
  /** Asks before unsaved content is lost. Returns whether to leave. */
  mayLeave: () => Promise<boolean>;
};

const LeaveGuardContext = createContext<LeaveGuard | undefined>(undefined);

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

/**
 * Knows the unsaved content of the pages, and asks before it is lost: on another page, in another environment, with
 * another key and at the sign-out. It is outside the pages of a key, because these end with the key.
 */
export function LeaveGuardProvider({ children }: { children: ReactNode }) {
  const [held, setHeld] = useState<readonly { what: Unsaved }[]>([]);
  const [asked, setAsked] = useState<{ what: Unsaved; answer: (leaves: boolean) => void }>();
  const unsaved = held.find(({ what }) => what === "secret")?.what ?? held[0]?.what;

  const hold = useCallback((what: Unsaved) => {
    const entry = { what };
    setHeld((others) => [...others, entry]);
    return () => setHeld((all) => all.filter((other) => other !== entry));
  }, []);
  const mayLeave = useCallback(() => {
    if (unsaved === undefined) return Promise.resolve(true);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    setAsked((earlier) => {
      earlier?.answer(false);
      return { what: unsaved, answer: resolve };
    });
    return promise;
  }, [unsaved]);
  const answer = (leaves: boolean) => {
    asked?.answer(leaves);
    setAsked(undefined);
  };

  const guard = useMemo(() => ({ unsaved, hold, mayLeave }), [unsaved, hold, mayLeave]);
  return (
    <LeaveGuardContext value={guard}>
      {children}
      {asked !== undefined && <LeaveDialog what={asked.what} onAnswer={answer} />}
    </LeaveGuardContext>
  );
}

const texts: Readonly<
  Record<Unsaved, { title: string; text: string; leave: string; stay: string }>
> = {
  changes: {
    title: "Leave without saving?",
    text: "Your changes are not saved. If you leave, they are lost.",
    leave: "Leave without saving",
    stay: "Keep editing",
  },
  secret: {
    title: "Leave without the key or secret?",
    text: "Halyard shows it only once. If you leave before you have copied it, it is lost.",
    leave: "Leave without it",
    stay: "Stay here",
  },
};

type LeaveDialogProps = { what: Unsaved; onAnswer: (leaves: boolean) => void };

function LeaveDialog({ what, onAnswer }: LeaveDialogProps) {
  const { title, text, leave, stay } = texts[what];
  return (
    <Dialog title={title} onClose={() => onAnswer(false)}>
      <p>{text}</p>
      <DialogActions>
        <Button variant="danger" onPress={() => onAnswer(true)}>
          {leave}
        </Button>
        <Button variant="primary" onPress={() => onAnswer(false)} autoFocus>
          {stay}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

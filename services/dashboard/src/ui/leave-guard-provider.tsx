import { type ReactNode, useCallback, useMemo, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog, DialogActions } from "./dialog.tsx";
import { LeaveGuardContext, type Losable, type Unsaved, unsavedKinds } from "./leave-guard.ts";

/**
 * Keeps the unsaved content of the pages, and asks before it is lost: on another page, in another environment, with
 * another key and at the sign-out. It is outside the pages of a key, because these end with the key.
 */
export function LeaveGuardProvider({ children }: { children: ReactNode }) {
  const [held, setHeld] = useState<readonly { what: Unsaved; lose: () => void }[]>([]);
  const [asked, setAsked] = useState<{ what: Losable; answer: (leaves: boolean) => void }>();
  const unsaved = unsavedKinds.find((kind) => held.some(({ what }) => what === kind));

  const hold = useCallback((what: Unsaved, lose: () => void) => {
    const entry = { what, lose };
    setHeld((others) => [...others, entry]);
    return () => setHeld((all) => all.filter((other) => other !== entry));
  }, []);
  const ask = useCallback((what: Losable) => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    setAsked((earlier) => {
      earlier?.answer(false);
      return { what, answer: resolve };
    });
    return promise;
  }, []);
  const answer = (leaves: boolean) => {
    if (leaves && asked?.what !== "input") for (const { lose } of held) lose();
    asked?.answer(leaves);
    setAsked(undefined);
  };

  const guard = useMemo(() => {
    const mayLeave = () => (unsaved === undefined ? Promise.resolve(true) : ask(unsaved));
    return { unsaved, hold, ask, mayLeave };
  }, [unsaved, hold, ask]);
  return (
    <LeaveGuardContext value={guard}>
      {children}
      {asked !== undefined && <LeaveDialog what={asked.what} onAnswer={answer} />}
    </LeaveGuardContext>
  );
}

type Texts = { title: string; text: string; leave: string; stay: string };

const changes: Texts = {
  title: "Leave without saving?",
  text: "Your changes are not saved. If you leave, they are lost.",
  leave: "Leave without saving",
  stay: "Keep editing",
};

const texts: Readonly<Record<Losable, Texts>> = {
  changes,
  draft: changes,
  input: {
    title: "Discard what you entered?",
    text: "What you entered in this dialog is not saved. If you close it, it is lost.",
    leave: "Discard",
    stay: "Keep editing",
  },
  secret: {
    title: "Leave without the key or secret?",
    text: "Halyard shows it only once. If you leave before you have copied it, it is lost.",
    leave: "Leave without it",
    stay: "Stay here",
  },
};

type LeaveDialogProps = { what: Losable; onAnswer: (leaves: boolean) => void };

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

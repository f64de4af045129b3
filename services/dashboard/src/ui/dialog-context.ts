import { createContext } from "react";

type DialogContent = {
  /** Keeps the dialog open, or allows again that it is closed. */
  keepOpen: (isKeptOpen: boolean) => void;
  /** Marks that something was entered, which must not be lost without a question. */
  markInput: () => void;
};

/** The functions that the content of a dialog calls. Outside of a dialog, they have no effect. */
export const DialogContext = createContext<DialogContent>({
  keepOpen: () => undefined,
  markInput: () => undefined,
});

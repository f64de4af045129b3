import { createContext, use } from "react";
import type { Operator } from "../api/schema.d.ts";
import type { Draft } from "./draft.ts";

/** Data that the fields of all rules need. It stays the same during edits, because each change renders all rules. */
type Editor = {
  readonly operators: ReadonlyMap<string, Operator> | undefined;
  edit: (change: (draft: Draft) => Draft) => void;
};

/** The percentage of the flag. Only the parts of a rule that show it are rendered when it changes. */
export const FlagPercentage = createContext(0);

export const EditorContext = createContext<Editor | undefined>(undefined);

export function useEditor(): Editor {
  const editor = use(EditorContext);
  if (editor === undefined) throw new Error("this component is only in the editor of a state");
  return editor;
}

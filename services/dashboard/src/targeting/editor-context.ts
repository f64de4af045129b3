import { createContext, use } from "react";
import type { Operator } from "../api/schema.d.ts";
import type { Draft } from "./draft.ts";
import type { Problems } from "./problems.ts";

/** Data that the fields of all rules need. */
type Editor = {
  readonly operators: ReadonlyMap<string, Operator> | undefined;
  readonly problems: Problems;
  edit: (change: (draft: Draft) => Draft) => void;
};

export const EditorContext = createContext<Editor | undefined>(undefined);

export function useEditor(): Editor {
  const editor = use(EditorContext);
  if (editor === undefined) throw new Error("this component is only in the editor of a state");
  return editor;
}

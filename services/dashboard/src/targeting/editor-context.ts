import { createContext, use } from "react";
import type { Operator } from "../api/schema.d.ts";
import type { Option } from "../ui/fields.tsx";
import type { Draft, DraftServe } from "./draft.ts";

/** Data that the fields of all rules need. It stays the same during edits, because each change renders all rules. */
type Editor = {
  /** The variations to choose from. A boolean flag has none. */
  readonly variations: readonly Option<string>[];
  /** The stored state. */
  readonly base: Draft;
  edit: (change: (draft: Draft) => Draft) => void;
};

/** The settings of the flag that apply to rules without own ones. */
type FlagDefaults = { readonly percentage: number; readonly serve: DraftServe | undefined };

/** Only the parts of a rule that show these defaults are rendered when they change. */
export const FlagDefaultsContext = createContext<FlagDefaults>({
  percentage: 0,
  serve: undefined,
});

/** The operators by name, or undefined while they are read. */
export type Operators = ReadonlyMap<string, Operator> | undefined;

/** The operators that the conditions below offer, in the editors of rules and of audiences. */
export const OperatorsContext = createContext<Operators>(undefined);
export const useOperatorsInEditor = (): Operators => use(OperatorsContext);

export const EditorContext = createContext<Editor | undefined>(undefined);

export function useEditor(): Editor {
  const editor = use(EditorContext);
  if (editor === undefined) throw new Error("this component is only in the editor of a state");
  return editor;
}

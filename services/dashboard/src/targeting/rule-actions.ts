import { useMemo } from "react";
import { notify } from "../ui/toasts.tsx";
import { copyOf, type DraftRule, moved } from "./draft.ts";
import { useEditor } from "./editor-context.ts";

export type RuleActions = ReturnType<typeof useRuleActions>;

type Effects = {
  /** Opens a rule that was added. */
  open: (uid: string) => void;
  /** Moves the focus to the button that adds a rule, because a rule was removed. */
  focusAdd: () => void;
  /** Tells screen readers the position of a rule that was moved. */
  announce: (text: string) => void;
};

/**
 * The changes of the rules of the draft. The actions stay the same during edits, so that they do not cause a rule to be
 * rendered.
 */
export function useRuleActions({ open, focusAdd, announce }: Effects) {
  const { edit } = useEditor();
  return useMemo(() => {
    const change = (changed: (rules: readonly DraftRule[]) => readonly DraftRule[]) =>
      edit((draft) => ({ ...draft, rules: changed(draft.rules) }));
    return {
      add(rule: DraftRule): void {
        change((rules) => [...rules, rule]);
        open(rule.uid);
      },
      update: (uid: string, changed: (rule: DraftRule) => DraftRule) =>
        change((rules) => rules.map((rule) => (rule.uid === uid ? changed(rule) : rule))),
      /** Names the rule by its identity, because events of a drag can arrive before the previous move is rendered. */
      move(uid: string, to: number): void {
        change((rules) =>
          moved(
            rules,
            rules.findIndex((rule) => rule.uid === uid),
            to,
          ),
        );
        announce(`Moved to position ${to + 1}.`);
      },
      duplicate: (rule: DraftRule, index: number) =>
        change((rules) => rules.toSpliced(index + 1, 0, copyOf(rule))),
      remove(rule: DraftRule, index: number): void {
        change((rules) => rules.filter(({ uid }) => uid !== rule.uid));
        focusAdd();
        notify({
          text: `Rule ${index + 1} is removed from the draft.`,
          action: {
            label: "Undo",
            onPress: () => change((rules) => rules.toSpliced(index, 0, rule)),
          },
        });
      },
    };
  }, [edit, open, focusAdd, announce]);
}

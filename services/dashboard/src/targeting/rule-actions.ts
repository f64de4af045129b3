import { notify } from "../ui/toasts.tsx";
import { copyOf, type DraftRule, moved } from "./draft.ts";
import { useEditor } from "./editor-context.ts";

export type RuleActions = ReturnType<typeof useRuleActions>;

/**
 * The changes of the rules of the draft. `open` is called with an added rule, and `focusAdd` after a rule was removed.
 */
export function useRuleActions(open: (uid: string) => void, focusAdd: () => void) {
  const { edit } = useEditor();
  const change = (changed: (rules: readonly DraftRule[]) => readonly DraftRule[]) =>
    edit((draft) => ({ ...draft, rules: changed(draft.rules) }));
  return {
    change,
    add(rule: DraftRule): void {
      change((rules) => [...rules, rule]);
      open(rule.uid);
    },
    update: (rule: DraftRule) =>
      change((rules) => rules.map((other) => (other.uid === rule.uid ? rule : other))),
    move: (from: number, to: number) => change((rules) => moved(rules, from, to)),
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
}

import { Plus } from "lucide-react";
import { type RefObject, useEffect, useRef, useState } from "react";
import { GridList, useDragAndDrop } from "react-aria-components";
import { ruleHint } from "../state/summary.ts";
import { Button } from "../ui/button.tsx";
import { Card } from "../ui/panels.tsx";
import { type Draft, type DraftRule, dropped, maxRules, newRule } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import { hasProblem } from "./problems.ts";
import { useRuleActions } from "./rule-actions.ts";
import { RuleRow } from "./rule-row.tsx";
import styles from "./targeting.module.css";

/** The rules, in evaluation order. */
export function RulesCard({ draft: { rules, rollout_percentage: percentage } }: { draft: Draft }) {
  const { problems } = useEditor();
  const [opened, setOpened] = useState<readonly string[]>([]);
  const [added, setAdded] = useState<string>();
  const frame = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  useFocusAdded(frame, added);
  const toggle = (uid: string) =>
    setOpened((before) =>
      before.includes(uid) ? before.filter((other) => other !== uid) : [...before, uid],
    );
  const open = (uid: string) => {
    setOpened((before) => [...before, uid]);
    setAdded(uid);
  };
  const actions = useRuleActions(open, () => end.current?.querySelector("button")?.focus());
  const { dragAndDropHooks } = useDragAndDrop<DraftRule>({
    getItems: (keys) => [...keys].map((key) => ({ "text/plain": String(key) })),
    onReorder: ({ keys, target }) => actions.change((all) => dropped(all, keys, target)),
  });
  const isFull = rules.length >= maxRules;
  return (
    <Card title="Rules">
      <div className={styles.stack} ref={frame}>
        <p className={styles.note}>{introduction(rules.length)}</p>
        {rules.length > 0 && (
          <GridList
            aria-label="Rules, in order"
            items={rules.map((rule, index) => ({ ...rule, id: rule.uid, index }))}
            dependencies={[rules, opened, problems, percentage]}
            dragAndDropHooks={dragAndDropHooks}
            keyboardNavigationBehavior="tab"
            className={styles.rules ?? ""}
          >
            {({ index }) => {
              const rule = rules[index] as DraftRule;
              return (
                <RuleRow
                  rule={rule}
                  index={index}
                  count={rules.length}
                  percentage={percentage}
                  hint={ruleHint(rules, index)}
                  isOpen={opened.includes(rule.uid) || hasProblem(problems, rule.uid)}
                  onToggle={() => toggle(rule.uid)}
                  actions={actions}
                />
              );
            }}
          </GridList>
        )}
        {rules.length > 0 && <p className={styles.note}>If no rule matches, the flag is off.</p>}
        <div ref={end}>
          <Button onPress={() => actions.add(newRule())} isDisabled={isFull}>
            <Plus size={16} aria-hidden /> Add rule
          </Button>
          {isFull && <p className={styles.note}>A flag has at most {maxRules} rules.</p>}
        </div>
      </div>
    </Card>
  );
}

/**
 * Moves the focus into the first field of an added rule. The list accepts the focus in a field only after its row had
 * it, and moves it to a row otherwise.
 */
function useFocusAdded(frame: RefObject<HTMLElement | null>, added: string | undefined): void {
  useEffect(() => {
    if (added === undefined) return undefined;
    const request = requestAnimationFrame(() => {
      const row = frame.current?.querySelector<HTMLElement>(`[data-key="${added}"]`);
      row?.focus();
      row?.querySelector<HTMLElement>("[role=combobox]")?.focus();
    });
    return () => cancelAnimationFrame(request);
  }, [frame, added]);
}

const introduction = (count: number): string =>
  count === 0
    ? "Without rules, the percentage applies to everyone. Add a rule to choose users by their attributes."
    : "Rules are tried from top to bottom, and the first one that matches decides. Later rules are not tried, also if the user is outside the percentage of the rule.";

import { Plus } from "lucide-react";
import {
  type Dispatch,
  type SetStateAction,
  useCallback,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { ruleHint } from "../state/summary.ts";
import { Button } from "../ui/button.tsx";
import { Card } from "../ui/panels.tsx";
import { type DraftRule, maxRules, newRule } from "./draft.ts";
import { type Problems, problemsOf } from "./problems.ts";
import { type RuleActions, useRuleActions } from "./rule-actions.ts";
import { RuleRow } from "./rule-row.tsx";
import styles from "./targeting.module.css";
import { useDraggedRule } from "./use-dragged-rule.ts";

type RulesCardProps = { rules: readonly DraftRule[]; problems: Problems };

/** The rules, in evaluation order. */
export function RulesCard({ rules, problems }: RulesCardProps) {
  const [opened, setOpened] = useState<readonly string[]>([]);
  const [added, setAdded] = useState<string>();
  const [announced, announce] = useState("");
  const end = useRef<HTMLDivElement>(null);
  const open = useCallback((uid: string) => {
    setOpened((before) => [...before, uid]);
    setAdded(uid);
  }, []);
  const focusAdd = useCallback(() => end.current?.querySelector("button")?.focus(), []);
  const actions = useRuleActions({ open, focusAdd, announce });
  const isFull = rules.length >= maxRules;
  return (
    <Card title="Rules">
      <div className={styles.stack}>
        <p className={styles.note}>{introduction(rules.length)}</p>
        <p role="status" className="visually-hidden">
          {announced}
        </p>
        {rules.length > 0 && (
          <>
            {problems.has("rules") && <p role="alert">{problems.get("rules")}</p>}
            <RuleList {...{ rules, problems, opened, setOpened, added, actions }} />
            <p className={styles.note}>If no rule matches, the flag is off.</p>
          </>
        )}
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

type RuleListProps = RulesCardProps & {
  opened: readonly string[];
  setOpened: Dispatch<SetStateAction<readonly string[]>>;
  /** The rule that was added last. Its first field takes the focus. */
  added: string | undefined;
  actions: RuleActions;
};

/** The rows of the rules. An edit renders only those that it changes. */
function RuleList({ rules, problems, opened, setOpened, added, actions }: RuleListProps) {
  const list = useRef<HTMLOListElement>(null);
  const moveHint = useId();
  const toggle = useCallback(
    (uid: string) =>
      setOpened((before) =>
        before.includes(uid) ? before.filter((other) => other !== uid) : [...before, uid],
      ),
    [setOpened],
  );
  const { dragged, start, listProps } = useDraggedRule(rules, actions.move);
  useEffect(() => {
    if (added === undefined) return;
    const row = list.current?.querySelector(`[data-rule="${added}"]`);
    row?.querySelector<HTMLElement>("[role=combobox]")?.focus();
  }, [added]);
  return (
    <>
      <p id={moveHint} hidden>
        Drag it, or press the up or down arrow key.
      </p>
      <ol aria-label="Rules, in order" className={styles.rules} ref={list} {...listProps}>
        {rules.map((rule, index) => {
          const ofRule = problemsOf(problems, rule.uid);
          return (
            <RuleRow
              key={rule.uid}
              rule={rule}
              index={index}
              isLast={index === rules.length - 1}
              hint={ruleHint(rules, index)}
              problems={ofRule}
              isOpen={opened.includes(rule.uid) || ofRule.size > 0}
              isDragged={rule.uid === dragged}
              moveHint={moveHint}
              onToggle={toggle}
              onDragStart={start}
              actions={actions}
            />
          );
        })}
      </ol>
    </>
  );
}

const introduction = (count: number): string =>
  count === 0
    ? "Without rules, the percentage applies to everyone. Add a rule to choose users by their attributes."
    : "Rules are tried from top to bottom, and the first one that matches decides. Later rules are not tried, also if the user is outside the percentage of the rule.";

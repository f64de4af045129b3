import { ArrowDown, ArrowUp, ChevronDown, Copy, GripVertical, Trash2 } from "lucide-react";
import { Button as AriaButton, GridListItem } from "react-aria-components";
import { capitalized, effectText, whoText } from "../state/words.ts";
import { Badge } from "../ui/badge.tsx";
import { RowMenu } from "../ui/menu.tsx";
import type { DraftRule } from "./draft.ts";
import type { RuleActions } from "./rule-actions.ts";
import { RuleEditor } from "./rule-editor.tsx";
import styles from "./targeting.module.css";

type RuleRowProps = {
  rule: DraftRule;
  index: number;
  count: number;
  /** The percentage of the flag. */
  percentage: number;
  hint: string | undefined;
  isOpen: boolean;
  onToggle: () => void;
  actions: RuleActions;
};

/** A rule in one line, with its fields below it while it is open. */
export function RuleRow(props: RuleRowProps) {
  const { rule, index, percentage, hint, isOpen, onToggle, actions } = props;
  const label = `Rule ${index + 1}`;
  const applied = rule.rollout_percentage ?? percentage;
  const effect = capitalized(effectText({ ...rule, rollout_percentage: applied }));
  const isOff = rule.value === false || applied === 0;
  return (
    <GridListItem
      id={rule.uid}
      textValue={`${label}: ${whoText(rule)}`}
      className={styles.rule ?? ""}
    >
      <div className={styles.ruleHead}>
        <AriaButton slot="drag" className={styles.drag ?? ""} aria-label={`Drag ${label}`}>
          <GripVertical size={16} aria-hidden />
        </AriaButton>
        <AriaButton className={styles.ruleToggle ?? ""} aria-expanded={isOpen} onPress={onToggle}>
          <span className="visually-hidden">{label}: </span>
          <span className={styles.number} aria-hidden>
            {index + 1}
          </span>
          <RuleText rule={rule} />
          <Badge tone={isOff ? "neutral" : "on"}>{effect}</Badge>
          <ChevronDown size={16} aria-hidden className={styles.chevron} />
        </AriaButton>
        <RuleMenu {...props} label={label} />
      </div>
      {hint !== undefined && <p className={styles.hint}>{hint}</p>}
      {isOpen && (
        <RuleEditor rule={rule} label={label} percentage={percentage} onChange={actions.update} />
      )}
    </GridListItem>
  );
}

function RuleText({ rule }: { rule: DraftRule }) {
  const { name, ...unnamed } = rule;
  return (
    <span className={styles.ruleText}>
      {name !== undefined && name !== "" && <strong>{name}</strong>}
      <span className={styles.who}>{whoText(unnamed)}</span>
    </span>
  );
}

function RuleMenu({ rule, index, count, actions, label }: RuleRowProps & { label: string }) {
  return (
    <RowMenu
      name={label}
      entries={[
        {
          id: "up",
          label: "Move up",
          icon: <ArrowUp size={16} aria-hidden />,
          isDisabled: index === 0,
          onAction: () => actions.move(index, index - 1),
        },
        {
          id: "down",
          label: "Move down",
          icon: <ArrowDown size={16} aria-hidden />,
          isDisabled: index === count - 1,
          onAction: () => actions.move(index, index + 1),
        },
        {
          id: "duplicate",
          label: "Duplicate",
          icon: <Copy size={16} aria-hidden />,
          onAction: () => actions.duplicate(rule, index),
        },
        {
          id: "remove",
          label: "Remove",
          icon: <Trash2 size={16} aria-hidden />,
          isDanger: true,
          onAction: () => actions.remove(rule, index),
        },
      ]}
    />
  );
}

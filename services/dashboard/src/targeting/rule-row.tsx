import { ArrowDown, ArrowUp, ChevronDown, Copy, GripVertical, Trash2 } from "lucide-react";
import { type KeyboardEvent, memo, type PointerEvent, use } from "react";
import { capitalized, effectText, whoText } from "../state/words.ts";
import { Badge } from "../ui/badge.tsx";
import { RowMenu } from "../ui/menu.tsx";
import type { DraftRule } from "./draft.ts";
import { FlagDefaultsContext } from "./editor-context.ts";
import type { Problems } from "./problems.ts";
import type { RuleActions } from "./rule-actions.ts";
import { RuleEditor } from "./rule-editor.tsx";
import styles from "./targeting.module.css";

type RuleRowProps = {
  rule: DraftRule;
  index: number;
  isLast: boolean;
  hint: string | undefined;
  problems: Problems;
  isOpen: boolean;
  isDragged: boolean;
  /** The element that says how to move a rule. */
  moveHint: string;
  onToggle: (uid: string) => void;
  onDragStart: (uid: string, event: PointerEvent<HTMLElement>) => void;
  actions: RuleActions;
};

/** A rule in one line, with its fields below it while it is open. */
export const RuleRow = memo(function RuleRow(props: RuleRowProps) {
  const { rule, index, hint, problems, isOpen, isDragged, onToggle, actions } = props;
  const label = `Rule ${index + 1}`;
  return (
    <li data-rule={rule.uid} data-dragging={isDragged || undefined} className={styles.rule}>
      <div className={styles.ruleHead}>
        <MoveHandle {...props} label={label} />
        <button
          type="button"
          className={styles.ruleToggle}
          aria-expanded={isOpen}
          onClick={() => onToggle(rule.uid)}
        >
          <span className="visually-hidden">{label}: </span>
          <span className={styles.number} aria-hidden>
            {index + 1}
          </span>
          <RuleText rule={rule} />
          <EffectBadge rule={rule} />
          <ChevronDown size={16} aria-hidden className={styles.chevron} />
        </button>
        <RuleMenu {...props} label={label} />
      </div>
      {hint !== undefined && <p className={styles.hint}>{hint}</p>}
      {isOpen && (
        <RuleEditor rule={rule} label={label} problems={problems} onChange={actions.update} />
      )}
    </li>
  );
});

type LabelledProps = RuleRowProps & { label: string };

/** A button that moves the rule with the arrow keys or the pointer. It keeps the focus when the rule moves. */
function MoveHandle(props: LabelledProps) {
  const { rule, index, isLast, moveHint, onDragStart, actions, label } = props;
  const moveWithKey = (event: KeyboardEvent<HTMLElement>) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    if (step < 0 ? index === 0 : isLast) return;
    const handle = event.currentTarget;
    actions.move(rule.uid, index + step);
    requestAnimationFrame(() => handle.scrollIntoView({ block: "nearest" }));
  };
  return (
    <button
      type="button"
      className={styles.drag}
      aria-label={`Move ${label}`}
      aria-describedby={moveHint}
      onKeyDown={moveWithKey}
      onPointerDown={(event) => onDragStart(rule.uid, event)}
    >
      <GripVertical size={16} aria-hidden />
    </button>
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

function EffectBadge({ rule }: { rule: DraftRule }) {
  const ofFlag = use(FlagDefaultsContext);
  const applied = rule.rollout_percentage ?? ofFlag.percentage;
  const serve = rule.serve ?? ofFlag.serve;
  const text = effectText({ ...rule, rollout_percentage: applied }, serve);
  return (
    <Badge tone={rule.value === false || applied === 0 ? "neutral" : "on"}>
      {serve === undefined || rule.value === false ? capitalized(text) : text}
    </Badge>
  );
}

function RuleMenu({ rule, index, isLast, actions, label }: LabelledProps) {
  return (
    <RowMenu
      name={label}
      entries={[
        {
          id: "up",
          label: "Move up",
          icon: <ArrowUp size={16} aria-hidden />,
          isDisabled: index === 0,
          onAction: () => actions.move(rule.uid, index - 1),
        },
        {
          id: "down",
          label: "Move down",
          icon: <ArrowDown size={16} aria-hidden />,
          isDisabled: isLast,
          onAction: () => actions.move(rule.uid, index + 1),
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

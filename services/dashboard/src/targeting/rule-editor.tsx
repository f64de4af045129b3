import { Plus } from "lucide-react";
import { type DragEvent, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Checkbox, Select, TextField } from "../ui/fields.tsx";
import { PercentageSlider } from "../ui/slider.tsx";
import { ConditionEditor } from "./condition-editor.tsx";
import { type DraftCondition, type DraftRule, maxConditions, newCondition } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import { fieldKey } from "./problems.ts";
import styles from "./targeting.module.css";

type RuleEditorProps = {
  rule: DraftRule;
  label: string;
  percentage: number;
  onChange: (rule: DraftRule) => void;
};

/** Keeps the browser from dragging the rule when a person selects text in its fields. */
function keepInPlace(event: DragEvent): void {
  event.preventDefault();
  event.stopPropagation();
}

/** The fields of a rule: its name, its conditions, and what its users get. */
export function RuleEditor({ rule, label, percentage, onChange }: RuleEditorProps) {
  const { problems } = useEditor();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only stops a drag of the row around it.
    <div className={styles.ruleBody} draggable onDragStart={keepInPlace}>
      <TextField
        label="Name (optional)"
        value={rule.name ?? ""}
        onChange={(name) => onChange({ ...rule, name })}
        error={problems.get(fieldKey(rule.uid, "name"))}
      />
      <Conditions rule={rule} label={label} onChange={onChange} />
      <Effect rule={rule} percentage={percentage} onChange={onChange} />
      {problems.has(fieldKey(rule.uid, "rule")) && (
        <p role="alert" className={styles.problem}>
          {problems.get(fieldKey(rule.uid, "rule"))}
        </p>
      )}
    </div>
  );
}

function Conditions({ rule, label, onChange }: Omit<RuleEditorProps, "percentage">) {
  const { conditions } = rule;
  const [added, setAdded] = useState<string>();
  const change = (changed: readonly DraftCondition[]) => onChange({ ...rule, conditions: changed });
  const add = () => {
    const condition = newCondition();
    setAdded(condition.uid);
    change([...conditions, condition]);
  };
  return (
    <fieldset className={styles.conditions}>
      <legend className={styles.legend}>
        {conditions.length === 0
          ? "Without conditions, the rule matches everyone."
          : "All of these must be true:"}
      </legend>
      {conditions.map((condition, index) => (
        <ConditionEditor
          key={condition.uid}
          rule={rule.uid}
          condition={condition}
          label={`${label}, condition ${index + 1}`}
          onChange={(changed) => change(conditions.with(index, changed))}
          isAdded={condition.uid === added}
          onRemove={() => change(conditions.toSpliced(index, 1))}
        />
      ))}
      <div>
        <Button size="small" onPress={add} isDisabled={conditions.length >= maxConditions}>
          <Plus size={14} aria-hidden /> Add condition
        </Button>
      </div>
    </fieldset>
  );
}

function Effect({ rule, percentage, onChange }: Omit<RuleEditorProps, "label">) {
  const isOff = rule.value === false;
  const own = rule.rollout_percentage;
  const { rollout_percentage: _, invalidPercentage, ...withoutOwn } = rule;
  const { problems } = useEditor();
  return (
    <div className={styles.effect}>
      <Select
        label="These users get the flag"
        value={isOff ? "off" : "on"}
        onChange={(value) => onChange({ ...rule, value: value === "on" })}
        options={[
          { value: "on", label: "On" },
          { value: "off", label: "Off", note: "whatever the percentage" },
        ]}
      />
      {!isOff && (
        <Checkbox
          isSelected={own !== undefined}
          onChange={(isOwn) =>
            onChange(isOwn ? { ...rule, rollout_percentage: percentage } : withoutOwn)
          }
        >
          {own === undefined
            ? `Own percentage (now that of the flag, ${percentage} %)`
            : "Own percentage"}
        </Checkbox>
      )}
      {!isOff && own !== undefined && (
        <PercentageSlider
          label="Percentage of these users"
          value={own}
          invalidText={invalidPercentage}
          error={problems.get(fieldKey(rule.uid, "rollout_percentage"))}
          onChange={(typed) => onChange({ ...rule, ...typed })}
        />
      )}
    </div>
  );
}

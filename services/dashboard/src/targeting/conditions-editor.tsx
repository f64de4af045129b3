import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { Button } from "../ui/button.tsx";
import { ConditionEditor } from "./condition-editor.tsx";
import { type DraftCondition, isBlank, maxConditions, newCondition, nextUid } from "./draft.ts";
import type { Problems } from "./problems.ts";
import styles from "./targeting.module.css";

type Conditions = readonly DraftCondition[];

type ConditionsEditorProps = {
  /** The identity of the rule, or of the alternative of an audience. */
  owner: string;
  label: string;
  legend: string;
  conditions: Conditions;
  problems: Problems;
  /** True for a rule, which can refer to audiences and other flags. */
  hasReferences: boolean;
  change: (changed: (conditions: Conditions) => Conditions) => void;
};

/** Conditions that must all hold. */
export function ConditionsEditor(props: ConditionsEditorProps) {
  const { owner, label, legend, conditions, problems, hasReferences, change } = props;
  const [added, setAdded] = useState<string>();
  const add = (condition: DraftCondition) => {
    setAdded(condition.uid);
    // A reference takes the place of the empty condition of a new rule.
    change((before) => [
      ...("attribute" in condition ? before : before.filter((other) => !isBlank(other))),
      condition,
    ]);
  };
  const changeCondition = useCallback(
    (uid: string, changed: (condition: DraftCondition) => DraftCondition) =>
      change((before) => before.map((other) => (other.uid === uid ? changed(other) : other))),
    [change],
  );
  const remove = useCallback(
    (uid: string) => change((before) => before.filter((other) => other.uid !== uid)),
    [change],
  );
  const isFull = conditions.length >= maxConditions;
  return (
    <fieldset className={styles.conditions}>
      <legend className={styles.legend}>{legend}</legend>
      {conditions.map((condition, index) => (
        <ConditionEditor
          key={condition.uid}
          owner={owner}
          condition={condition}
          label={`${label}, condition ${index + 1}`}
          problems={problems}
          onChange={changeCondition}
          isAdded={condition.uid === added}
          onRemove={remove}
        />
      ))}
      <div className={styles.adders}>
        <Button size="small" onPress={() => add(newCondition())} isDisabled={isFull}>
          <Plus size={14} aria-hidden /> Add condition
        </Button>
        {hasReferences && (
          <>
            <Button
              size="small"
              onPress={() => add({ uid: nextUid(), audience: "" })}
              isDisabled={isFull}
            >
              <Plus size={14} aria-hidden /> Add audience
            </Button>
            <Button
              size="small"
              onPress={() => add({ uid: nextUid(), flag: "", is: "on" })}
              isDisabled={isFull}
            >
              <Plus size={14} aria-hidden /> Add flag
            </Button>
          </>
        )}
      </div>
    </fieldset>
  );
}

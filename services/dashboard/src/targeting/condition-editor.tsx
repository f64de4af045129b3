import { X } from "lucide-react";
import { verbOf } from "../state/words.ts";
import { IconButton } from "../ui/button.tsx";
import { Select } from "../ui/fields.tsx";
import { AttributeField } from "./attribute-field.tsx";
import { type Category, type OperatorName, valueFor } from "./conditions.ts";
import type { DraftCondition } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import { fieldKey } from "./problems.ts";
import styles from "./targeting.module.css";
import { ValueField } from "./value-field.tsx";

const categoryLabels: Readonly<Record<Category, string>> = {
  string: "text",
  list: "list",
  number: "number or time",
  semver: "version",
};

type Props = {
  rule: string;
  condition: DraftCondition;
  label: string;
  /** The person has just added it, so its first field takes the focus. */
  isAdded: boolean;
  onChange: (condition: DraftCondition) => void;
  onRemove: () => void;
};

/** One condition: an attribute, an operator and a value whose field suits the operator. */
export function ConditionEditor(props: Props) {
  const { rule, condition, label, isAdded, onChange, onRemove } = props;
  const { operators, problems } = useEditor();
  const { uid, attribute, operator, value } = condition;
  const described = operators?.get(operator);
  const options = [...(operators?.values() ?? [])].map(({ name, category }) => ({
    value: name,
    label: verbOf(name),
    note: categoryLabels[category],
  }));
  const choose = (next: OperatorName) => {
    // Not every operator can match case, and the API rejects the member for the others.
    const { match_case: _, ...rest } = condition;
    onChange({
      ...rest,
      operator: next,
      value: valueFor(operators?.get(next)?.category, value),
    });
  };
  return (
    <fieldset className={styles.condition} aria-label={label}>
      <AttributeField
        label="Attribute"
        value={attribute}
        onChange={(next) => onChange({ ...condition, attribute: next })}
        error={problems.get(fieldKey(rule, "attribute", uid))}
        autoFocus={isAdded}
      />
      <Select
        label="Operator"
        isLabelHidden
        value={operator}
        onChange={choose}
        options={options}
        error={problems.get(fieldKey(rule, "operator", uid))}
      />
      <ValueField
        condition={condition}
        category={described?.category}
        error={problems.get(fieldKey(rule, "value", uid))}
        onChange={(next) => onChange({ ...condition, value: next })}
      />
      <IconButton
        icon={X}
        label={`Remove ${label.toLowerCase()}`}
        size="small"
        onPress={onRemove}
      />
      {described !== undefined && (
        <p className={styles.help}>
          {described.description} Example: <code>{described.example}</code>
        </p>
      )}
    </fieldset>
  );
}

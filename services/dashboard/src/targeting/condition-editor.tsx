import { X } from "lucide-react";
import { memo, useCallback, useMemo } from "react";
import { verbOf } from "../state/words.ts";
import { IconButton } from "../ui/button.tsx";
import { Checkbox, Select } from "../ui/fields.tsx";
import { AttributeField } from "./attribute-field.tsx";
import { type Category, type OperatorName, type Value, valueFor } from "./conditions.ts";
import type { DraftCondition } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import { fieldKey, type Problems } from "./problems.ts";
import styles from "./targeting.module.css";
import { ValueField } from "./value-field.tsx";

const categoryLabels: Readonly<Record<Category, string>> = {
  string: "text",
  list: "list",
  number: "number or time",
  semver: "version",
};

/** Regular expressions say themselves whether they match case. */
const canMatchCase = (category: Category, operator: OperatorName): boolean =>
  category === "list" || (category === "string" && operator !== "matches_regex");

type Operators = ReturnType<typeof useEditor>["operators"];

type Props = {
  rule: string;
  condition: DraftCondition;
  label: string;
  /** The person has just added it, so its first field takes the focus. */
  isAdded: boolean;
  problems: Problems;
  onChange: (uid: string, changed: (condition: DraftCondition) => DraftCondition) => void;
  onRemove: (uid: string) => void;
};

const optionsOf = (operators: Operators) =>
  [...(operators?.values() ?? [])].map(({ name, category }) => ({
    value: name,
    label: verbOf(name),
    note: categoryLabels[category],
  }));

function CaseField({ condition, onChange }: Pick<Props, "condition" | "onChange">) {
  const choose = (matches: boolean) =>
    onChange(condition.uid, ({ match_case: _, ...before }) => ({
      ...before,
      ...(matches && { match_case: true }),
    }));
  return (
    <div className={styles.help}>
      <Checkbox isSelected={condition.match_case === true} onChange={choose}>
        Match upper and lower case
      </Checkbox>
    </div>
  );
}

/** One condition: an attribute, an operator and a value whose field suits the operator. */
export const ConditionEditor = memo(function ConditionEditor(props: Props) {
  const { rule, condition, label, problems, isAdded, onChange, onRemove } = props;
  const { operators } = useEditor();
  const { uid, attribute, operator } = condition;
  const described = operators?.get(operator);
  const options = useMemo(() => optionsOf(operators), [operators]);
  const choose = useCallback(
    (next: OperatorName) =>
      // Not every operator can match case, and the API rejects the member for the others.
      onChange(uid, ({ match_case: _, ...before }) => ({
        ...before,
        operator: next,
        value: valueFor(operators?.get(next)?.category, before.value),
      })),
    [onChange, uid, operators],
  );
  const setAttribute = useCallback(
    (next: string) => onChange(uid, (before) => ({ ...before, attribute: next })),
    [onChange, uid],
  );
  const setValue = useCallback(
    (next: Value) => onChange(uid, (before) => ({ ...before, value: next })),
    [onChange, uid],
  );
  return (
    <fieldset className={styles.condition} aria-label={label}>
      <AttributeField
        label="Attribute"
        value={attribute}
        onChange={setAttribute}
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
        onChange={setValue}
      />
      <IconButton
        icon={X}
        label={`Remove ${label.toLowerCase()}`}
        size="small"
        onPress={() => onRemove(uid)}
      />
      {described !== undefined && (
        <>
          <p className={styles.help}>
            {described.description} Example: <code>{described.example}</code>
          </p>
          {canMatchCase(described.category, operator) && <CaseField {...{ condition, onChange }} />}
        </>
      )}
    </fieldset>
  );
});

import { X } from "lucide-react";
import { memo, useCallback, useMemo } from "react";
import { verbOf } from "../state/words.ts";
import { IconButton } from "../ui/button.tsx";
import { Checkbox, Select } from "../ui/fields.tsx";
import { AttributeField } from "./attribute-field.tsx";
import { AudienceFields } from "./audience-fields.tsx";
import { type Category, type OperatorName, type Value, valueFor } from "./conditions.ts";
import type { DraftComparison, DraftCondition } from "./draft.ts";
import { type Operators, useOperatorsInEditor } from "./editor-context.ts";
import { fieldKey, type Problems } from "./problems.ts";
import { RequirementFields } from "./requirement-fields.tsx";
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

type Props = {
  /** The identity of the rule, or of the alternative of an audience. */
  owner: string;
  condition: DraftCondition;
  label: string;
  /** The person has just added it, so its first field takes the focus. */
  isAdded: boolean;
  problems: Problems;
  onChange: (uid: string, changed: (condition: DraftCondition) => DraftCondition) => void;
  onRemove: (uid: string) => void;
};

type FieldsProps<Condition> = Omit<Props, "condition" | "onRemove" | "label" | "onChange"> & {
  condition: Condition;
  onChange: (changed: (condition: Condition) => Condition) => void;
};

/** One condition: a comparison of an attribute, an audience, or another flag. */
export const ConditionEditor = memo(function ConditionEditor(props: Props) {
  const { condition, label, onChange, onRemove, ...shared } = props;
  const { uid } = condition;
  const change = useCallback(
    (changed: (condition: DraftComparison) => DraftComparison) =>
      onChange(uid, (before) => ("attribute" in before ? changed(before) : before)),
    [onChange, uid],
  );
  const { problems, owner, isAdded } = shared;
  return (
    <fieldset className={styles.condition} aria-label={label}>
      {"attribute" in condition && (
        <ComparisonFields {...shared} condition={condition} onChange={change} />
      )}
      {"audience" in condition && (
        <AudienceFields
          audience={condition.audience}
          error={problems.get(fieldKey(owner, "audience", uid))}
          onChange={(audience) => onChange(uid, () => ({ uid, audience }))}
        />
      )}
      {"flag" in condition && (
        <RequirementFields
          requirement={condition}
          errors={{
            flag: problems.get(fieldKey(owner, "flag", uid)),
            is: problems.get(fieldKey(owner, "is", uid)),
          }}
          autoFocus={isAdded}
          onChange={(requirement) => onChange(uid, () => ({ uid, ...requirement }))}
        />
      )}
      <IconButton
        icon={X}
        label={`Remove ${label.toLowerCase()}`}
        size="small"
        onPress={() => onRemove(uid)}
      />
      {"attribute" in condition && <ComparisonHelp condition={condition} onChange={change} />}
    </fieldset>
  );
});

const optionsOf = (operators: Operators) =>
  [...(operators?.values() ?? [])].map(({ name, category }) => ({
    value: name,
    label: verbOf(name),
    note: categoryLabels[category],
  }));

/** An attribute, an operator and a value whose field suits the operator. */
function ComparisonFields(props: FieldsProps<DraftComparison>) {
  const { owner, condition, problems, isAdded, onChange } = props;
  const operators = useOperatorsInEditor();
  const { uid, attribute, operator } = condition;
  const options = useMemo(() => optionsOf(operators), [operators]);
  const choose = useCallback(
    (next: OperatorName) =>
      // Not every operator can match case, and the API rejects the member for the others.
      onChange(({ match_case: _, ...before }) => ({
        ...before,
        operator: next,
        value: valueFor(operators?.get(next)?.category, before.value),
      })),
    [onChange, operators],
  );
  const setAttribute = useCallback(
    (next: string) => onChange((before) => ({ ...before, attribute: next })),
    [onChange],
  );
  const setValue = useCallback(
    (next: Value) => onChange((before) => ({ ...before, value: next })),
    [onChange],
  );
  return (
    <>
      <AttributeField
        label="Attribute"
        value={attribute}
        onChange={setAttribute}
        error={problems.get(fieldKey(owner, "attribute", uid))}
        autoFocus={isAdded}
      />
      <Select
        label="Operator"
        isLabelHidden
        value={operator}
        onChange={choose}
        options={options}
        error={problems.get(fieldKey(owner, "operator", uid))}
      />
      <ValueField
        condition={condition}
        category={operators?.get(operator)?.category}
        error={problems.get(fieldKey(owner, "value", uid))}
        onChange={setValue}
      />
    </>
  );
}

type HelpProps = Pick<FieldsProps<DraftComparison>, "condition" | "onChange">;

/** Describes the operator, and offers to match case where the operator can. */
function ComparisonHelp({ condition, onChange }: HelpProps) {
  const described = useOperatorsInEditor()?.get(condition.operator);
  if (described === undefined) return null;
  const choose = (matches: boolean) =>
    onChange(({ match_case: _, ...before }) => ({
      ...before,
      ...(matches && { match_case: true }),
    }));
  return (
    <>
      <p className={styles.help}>
        {described.description} Example: <code>{described.example}</code>
      </p>
      {canMatchCase(described.category, condition.operator) && (
        <div className={styles.help}>
          <Checkbox isSelected={condition.match_case === true} onChange={choose}>
            Match upper and lower case
          </Checkbox>
        </div>
      )}
    </>
  );
}

import { isTime } from "../state/words.ts";
import { Select, TextField } from "../ui/fields.tsx";
import { TagsField } from "../ui/tags-field.tsx";
import {
  type Category,
  fromLocalInput,
  itemsOf,
  numberFrom,
  plainNumber,
  toLocalInput,
  type Value,
} from "./conditions.ts";
import type { DraftCondition } from "./draft.ts";
import styles from "./targeting.module.css";

type ValueFieldProps = {
  condition: DraftCondition;
  category: Category | undefined;
  error: string | undefined;
  onChange: (value: Value) => void;
};

/** The field for the value of a condition, by what its operator compares. */
export function ValueField({ condition, category, error, onChange }: ValueFieldProps) {
  const { operator, value } = condition;
  const shared = { label: "Value", isLabelHidden: true, error };
  if (category === "list") {
    const items = itemsOf(value);
    return (
      <TagsField
        {...shared}
        tags={items.map(String)}
        onChange={(tags) => onChange(tags.map((tag) => keptItem(items, tag)))}
        placeholder="values, with commas"
      />
    );
  }
  if (category === "number")
    return <NumberOrTime condition={condition} error={error} onChange={onChange} />;
  const isCode = category === "semver" || operator === "matches_regex";
  return (
    <TextField
      {...shared}
      isCode={isCode}
      placeholder={category === "semver" ? "2.3.0" : isCode ? "^[a-z]+@example\\.com$" : "value"}
      value={String(value)}
      onChange={(text) => onChange(category === "semver" ? text.trim() : text)}
    />
  );
}

/** Numbers and booleans in a stored list keep their type. */
const keptItem = (items: readonly (string | number | boolean)[], tag: string) =>
  items.find((item) => String(item) === tag) ?? tag;

const hourMs = 3_600_000;

/** Number operators compare numbers or date-times, so the person chooses. */
function NumberOrTime({ condition, error, onChange }: Omit<ValueFieldProps, "category">) {
  const { value } = condition;
  const { language: locale } = navigator;
  const isInstant = isTime(value);
  const choose = (kind: "number" | "time") => {
    const nextHour = new Date(Math.ceil(Date.now() / hourMs) * hourMs).toISOString();
    onChange(kind === "time" ? nextHour.replace(".000Z", "Z") : "");
  };
  return (
    <div className={styles.numberOrTime}>
      <Select
        label="Kind of value"
        isLabelHidden
        value={isInstant ? "time" : "number"}
        onChange={choose}
        options={[
          { value: "number", label: "Number" },
          { value: "time", label: "Time" },
        ]}
      />
      {isInstant ? (
        <TextField
          label="Value, in your time zone"
          isLabelHidden
          type="datetime-local"
          value={toLocalInput(value)}
          onChange={(text) => text !== "" && onChange(fromLocalInput(text))}
          description={`In the rule: ${value}`}
          error={error}
        />
      ) : (
        <TextField
          label="Value"
          isLabelHidden
          isCode
          placeholder="18"
          value={String(value)}
          onChange={(text) => onChange(numberFrom(text.trim(), locale))}
          onBlur={() => onChange(plainNumber(value, locale))}
          error={error}
        />
      )}
    </div>
  );
}

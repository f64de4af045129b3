import { useState } from "react";
import { isTime } from "../state/words.ts";
import { Select, TextField } from "../ui/fields.tsx";
import { count } from "../ui/numbers.ts";
import { TagsField } from "../ui/tags-field.tsx";
import {
  type Category,
  fromLocalInput,
  type Item,
  itemsOf,
  linesOf,
  numberFrom,
  plainNumber,
  toLocalInput,
  type Value,
} from "./conditions.ts";
import type { DraftComparison } from "./draft.ts";
import styles from "./targeting.module.css";

type ValueFieldProps = {
  condition: DraftComparison;
  category: Category | undefined;
  error: string | undefined;
  onChange: (value: Value) => void;
};

/** The field for the value of a condition, by what its operator compares. */
export function ValueField({ condition, category, error, onChange }: ValueFieldProps) {
  const { operator, value } = condition;
  const shared = { label: "Value", isLabelHidden: true, error };
  if (category === "list")
    return <ListField items={itemsOf(value)} error={error} onChange={onChange} />;
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

/** Values that are shown one by one. More of them are slow, and hard to read. */
const maxTags = 50;

type ListFieldProps = {
  items: readonly Item[];
  error: string | undefined;
  onChange: (items: Item[]) => void;
};

/** The values of a list: one by one, or as lines if there are many. Lines stay lines while the person deletes some. */
function ListField({ items, error, onChange }: ListFieldProps) {
  const [isLong, setLong] = useState(() => isText(items));
  const [wasLong] = useState(isLong);
  // Numbers and booleans of the list keep their type when their text is typed again.
  const [known] = useState(() => new Map(items.map((item) => [String(item), item])));
  const [text, setText] = useState("");
  if (!isLong && isText(items)) setLong(true);
  const read = (texts: readonly string[]) => texts.map((each) => known.get(each) ?? each);
  if (!isLong)
    return (
      <TagsField
        label="Value"
        isLabelHidden
        error={error}
        tags={items.map(String)}
        onChange={(tags) => onChange(read(tags))}
        placeholder="values, with commas"
      />
    );
  // The text keeps empty lines while the person types, but follows the values if these change elsewhere.
  const isTyped = isSameList(read(linesOf(text)), items);
  return (
    <TextField
      label="Values, one per line"
      isLabelHidden
      rows={10}
      isCode
      autoFocus={!wasLong}
      description={`${items.length === 1 ? "1 value" : `${count(items.length)} values`}, one per line`}
      error={error}
      value={isTyped ? text : items.join("\n")}
      onChange={(typed) => {
        setText(typed);
        onChange(read(linesOf(typed)));
      }}
    />
  );
}

/** Returns whether values are edited as lines: if there are many, and no line would differ from its value. */
const isText = (items: readonly Item[]): boolean =>
  items.length > maxTags && isSameList(linesOf(items.join("\n")), items.map(String));

const isSameList = (some: readonly Item[], others: readonly Item[]): boolean =>
  some.length === others.length && some.every((item, index) => item === others[index]);

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

import { parseDate } from "@internationalized/date";
import { DateField as AriaDateField, DateInput, DateSegment, Label } from "react-aria-components";
import styles from "./date-field.module.css";
import fields from "./fields.module.css";

type DateFieldProps = {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
};

/** A field for a day, as "2027-01-31". Undefined while no day is entered. */
export function DateField({ label, value, onChange }: DateFieldProps) {
  return (
    <AriaDateField
      className={styles.field ?? ""}
      value={value === undefined ? null : parseDate(value)}
      onChange={(date) => onChange(date?.toString())}
      shouldForceLeadingZeros
    >
      <Label className={styles.label ?? ""}>{label}</Label>
      <DateInput className={`${fields.input} ${styles.input}`}>
        {(segment) => <DateSegment segment={segment} className={fields.dateSegment ?? ""} />}
      </DateInput>
    </AriaDateField>
  );
}

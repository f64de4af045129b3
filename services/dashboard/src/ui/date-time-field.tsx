import {
  CalendarDateTime,
  getLocalTimeZone,
  toCalendarDateTime,
  today,
} from "@internationalized/date";
import { CalendarDays, ChevronLeft, ChevronRight, X } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import {
  Button as AriaButton,
  Calendar,
  CalendarCell,
  CalendarGrid,
  DateInput,
  DatePicker,
  DateSegment,
  Dialog,
  FieldError,
  Group,
  Heading,
  Label,
  Popover,
  Text,
} from "react-aria-components";
import { IconButton } from "./button.tsx";
import styles from "./date-time-field.module.css";
import fields from "./fields.module.css";
import overlay from "./overlay.module.css";

/** Time of day of a date that is picked in the calendar. */
const usualHour = 9;

type DateTimeFieldProps = {
  label: string;
  value: CalendarDateTime | null;
  onChange: (value: CalendarDateTime | null) => void;
  /** Reports that the person left the field with only a part of a time in it. */
  onIncomplete: (isIncomplete: boolean) => void;
  description?: ReactNode;
  error?: string | undefined;
  autoFocus?: boolean;
};

/** A field for a date and a time of day on the person's own clock, or for none. */
export function DateTimeField(props: DateTimeFieldProps) {
  const { label, value, onChange, onIncomplete, description, error, autoFocus = false } = props;
  const first = today(getLocalTimeZone());
  const segments = useRef<HTMLDivElement>(null);
  const [isPartial, setPartial] = useState(false);
  // A new field is the only way to empty segments that do not form a value yet.
  const [emptied, setEmptied] = useState(0);
  const check = (isFocused: boolean) => {
    const partial = !isFocused && isPartlyFilled(segments.current);
    setPartial(partial);
    onIncomplete(partial);
  };
  const change = (next: CalendarDateTime | null) => {
    setPartial(false);
    onIncomplete(false);
    onChange(next);
  };
  const remove = () => {
    setEmptied(emptied + 1);
    change(null);
  };
  const shownError = isPartial ? "Enter the date and the time, or remove both." : error;
  return (
    <DatePicker
      key={emptied}
      className={fields.field ?? ""}
      granularity="minute"
      shouldForceLeadingZeros
      hideTimeZone
      value={value}
      onChange={change}
      onFocusChange={check}
      minValue={toCalendarDateTime(first)}
      placeholderValue={new CalendarDateTime(first.year, first.month, first.day, usualHour)}
      isInvalid={shownError !== undefined}
      validationBehavior="aria"
      autoFocus={autoFocus || emptied > 0}
    >
      <Label className={fields.label ?? ""}>{label}</Label>
      <div className={styles.row}>
        <Group ref={segments} className={`${fields.input} ${styles.group}`}>
          <DateInput className={styles.segments ?? ""}>
            {(segment) => <DateSegment segment={segment} className={fields.dateSegment ?? ""} />}
          </DateInput>
          <AriaButton className={styles.open ?? ""}>
            <CalendarDays size={16} aria-hidden />
          </AriaButton>
        </Group>
        {(value !== null || isPartial) && (
          <IconButton icon={X} label={`Remove: ${label}`} onPress={remove} slot={null} />
        )}
      </div>
      {description !== undefined && (
        <Text slot="description" className={fields.description ?? ""}>
          {description}
        </Text>
      )}
      <FieldError className={fields.error ?? ""}>{shownError}</FieldError>
      <Popover className={`${overlay.popover} ${styles.popover}`}>
        <Dialog className={styles.dialog ?? ""}>
          <Month />
        </Dialog>
      </Popover>
    </DatePicker>
  );
}

/** Returns whether some parts of the time are filled in and others are not. */
function isPartlyFilled(field: HTMLElement | null): boolean {
  const parts = [...(field?.querySelectorAll('[role="spinbutton"]') ?? [])];
  const empty = parts.filter((part) => part.hasAttribute("data-placeholder")).length;
  return empty > 0 && empty < parts.length;
}

function Month() {
  return (
    <Calendar>
      <header className={styles.month}>
        <AriaButton slot="previous" className={styles.open ?? ""}>
          <ChevronLeft size={16} aria-hidden />
        </AriaButton>
        <Heading className={styles.title ?? ""} />
        <AriaButton slot="next" className={styles.open ?? ""}>
          <ChevronRight size={16} aria-hidden />
        </AriaButton>
      </header>
      <CalendarGrid className={styles.grid ?? ""}>
        {(date) => <CalendarCell date={date} className={styles.day ?? ""} />}
      </CalendarGrid>
    </Calendar>
  );
}

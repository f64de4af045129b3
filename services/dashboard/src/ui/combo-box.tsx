import { ChevronDown } from "lucide-react";
import {
  ComboBox as AriaComboBox,
  Button,
  FieldError,
  Group,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
} from "react-aria-components";
import styles from "./combo-box.module.css";
import fields from "./fields.module.css";
import overlay from "./overlay.module.css";

export type ComboBoxProps = {
  label: string;
  isLabelHidden?: boolean;
  value: string;
  onChange: (value: string) => void;
  suggestions: readonly string[];
  error?: string | undefined;
  placeholder?: string;
  autoFocus?: boolean;
  /** Text of the open list while there are no suggestions, such as during their read. Without it, the list is closed. */
  emptyText?: string;
  onFocus?: () => void;
};

/** A text field that suggests values and takes every other one too. */
export function ComboBox(props: ComboBoxProps) {
  const { label, isLabelHidden, value, onChange, suggestions, error, placeholder, emptyText } =
    props;
  return (
    <AriaComboBox
      className={fields.field ?? ""}
      inputValue={value}
      onInputChange={onChange}
      selectedKey={suggestions.includes(value) ? value : null}
      onSelectionChange={(key) => key !== null && onChange(String(key))}
      defaultItems={suggestions.map((name) => ({ name }))}
      allowsCustomValue
      allowsEmptyCollection={emptyText !== undefined}
      autoFocus={props.autoFocus ?? false}
      {...(props.onFocus !== undefined && { onFocus: props.onFocus })}
      isInvalid={error !== undefined}
      validationBehavior="aria"
    >
      <Label className={isLabelHidden ? "visually-hidden" : (fields.label ?? "")}>{label}</Label>
      <Group className={styles.group ?? ""}>
        <Input
          className={`${fields.input} ${fields.code} ${styles.input}`}
          spellCheck="false"
          autoCapitalize="off"
          {...(placeholder !== undefined && { placeholder })}
        />
        <Button className={styles.open ?? ""} aria-label="Show suggestions">
          <ChevronDown size={16} aria-hidden />
        </Button>
      </Group>
      <FieldError className={fields.error ?? ""}>{error}</FieldError>
      <Popover className={overlay.popover ?? ""}>
        <ListBox<{ name: string }>
          className={overlay.list ?? ""}
          renderEmptyState={() => <p className={overlay.optionNote}>{emptyText}</p>}
        >
          {({ name }) => (
            <ListBoxItem id={name} textValue={name} className={overlay.option ?? ""}>
              <code>{name}</code>
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaComboBox>
  );
}

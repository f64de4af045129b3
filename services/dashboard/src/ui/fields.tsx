import { Check, ChevronDown, Search, X } from "lucide-react";
import { type ReactNode, use, useId } from "react";
import {
  Checkbox as AriaCheckbox,
  SearchField as AriaSearchField,
  Select as AriaSelect,
  TextField as AriaTextField,
  Button,
  type CheckboxProps,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  SelectValue,
  Text,
  TextArea,
} from "react-aria-components";
import { DialogContext } from "./dialog-context.ts";
import styles from "./fields.module.css";
import overlay from "./overlay.module.css";
import { useSuggestions } from "./suggestions.tsx";

type FieldProps = {
  label: string;
  /** Hides the label from sighted people, where the layout names the field already. */
  isLabelHidden?: boolean;
  /** Help below the field. */
  description?: ReactNode;
  /** A message of the API or of the form about this field. */
  error?: string | undefined;
};

type TextFieldProps = FieldProps & {
  value: string;
  onChange: (value: string) => void;
  onBlur?: () => void;
  placeholder?: string;
  type?: "text" | "email" | "url" | "password" | "number" | "date" | "time" | "datetime-local";
  rows?: number;
  isRequired?: boolean;
  autoFocus?: boolean;
  autoComplete?: string;
  /** Values that the browser offers while a person types. */
  suggestions?: readonly string[];
  /** Shows dots instead of the text. */
  isSecret?: boolean;
  /** Shows the text in the font of code, without spell check. */
  isCode?: boolean;
};

/** A field for one line of text, or for several with `rows`. */
export function TextField(props: TextFieldProps) {
  const {
    label,
    isLabelHidden,
    description,
    error,
    placeholder,
    rows,
    isCode,
    isSecret,
    suggestions,
    ...field
  } = props;
  const { list, datalist } = useSuggestions(suggestions);
  const input = {
    className: `${styles.input} ${isCode ? styles.code : ""} ${isSecret ? styles.secret : ""}`,
    ...(placeholder !== undefined && { placeholder }),
    ...list,
  };
  return (
    <AriaTextField
      {...field}
      className={styles.field ?? ""}
      isInvalid={error !== undefined}
      validationBehavior="aria"
      spellCheck={isCode ? "false" : "true"}
    >
      <Label className={isLabelHidden ? "visually-hidden" : (styles.label ?? "")}>{label}</Label>
      {rows === undefined ? <Input {...input} /> : <TextArea {...input} rows={rows} />}
      {datalist}
      <Help description={description} error={error} />
    </AriaTextField>
  );
}

function Help({ description, error }: Pick<FieldProps, "description" | "error">) {
  return (
    <>
      {description !== undefined && (
        <Text slot="description" className={styles.description ?? ""}>
          {description}
        </Text>
      )}
      <FieldError className={styles.error ?? ""}>{error}</FieldError>
    </>
  );
}

type SearchFieldProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
};

/** A field that filters what is below it. Escape clears it. */
export function SearchField({ label, placeholder, ...props }: SearchFieldProps) {
  return (
    <AriaSearchField {...props} className={styles.search ?? ""} aria-label={label}>
      <Search size={16} aria-hidden className={styles.searchIcon} />
      <Input className={styles.input ?? ""} {...(placeholder !== undefined && { placeholder })} />
      <Button className={styles.clear ?? ""}>
        <X size={14} aria-hidden />
      </Button>
    </AriaSearchField>
  );
}

export type Option<Value extends string> = { value: Value; label: string; note?: string };

type SelectProps<Value extends string> = FieldProps & {
  options: readonly Option<Value>[];
  value: Value;
  onChange: (value: Value) => void;
};

/** A choice of one of a few options. */
export function Select<Value extends string>(props: SelectProps<Value>) {
  const { label, isLabelHidden, description, error, options, value, onChange } = props;
  const { markInput } = use(DialogContext);
  const choose = (chosen: Value) => {
    // A text field causes an event of the browser, a choice does not.
    if (chosen !== value) markInput();
    onChange(chosen);
  };
  return (
    <AriaSelect
      className={styles.field ?? ""}
      selectedKey={value}
      onSelectionChange={(key) => key !== null && choose(key as Value)}
      isInvalid={error !== undefined}
    >
      <Label className={isLabelHidden ? "visually-hidden" : (styles.label ?? "")}>{label}</Label>
      <Button className={`${styles.input} ${styles.select}`}>
        <SelectValue>
          {({ isPlaceholder, selectedText, defaultChildren }) =>
            isPlaceholder ? defaultChildren : selectedText
          }
        </SelectValue>
        <ChevronDown size={16} aria-hidden />
      </Button>
      <Help description={description} error={error} />
      <Popover className={overlay.popover ?? ""}>
        <ListBox className={overlay.list ?? ""} items={options}>
          {(option) => (
            <ListBoxItem
              id={option.value}
              textValue={option.label}
              className={overlay.option ?? ""}
            >
              <span>{option.label}</span>
              {option.note !== undefined && (
                <span className={overlay.optionNote}>{option.note}</span>
              )}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}

type SwitchProps = {
  label: string;
  isLabelHidden?: boolean;
  isSelected: boolean;
  isDisabled?: boolean;
  /** Why the switch is disabled. It stays focusable then, so that everybody can read the reason. */
  whyNot?: string | undefined;
  onChange: (isSelected: boolean) => void;
  /** Replaces the visible label for screen readers. */
  "aria-label"?: string;
};

/**
 * A switch that takes effect immediately. It is the browser's own checkbox, because a list mounts many of them while it
 * scrolls (bench `dashboard`, rows "scrolling").
 */
export function Switch({
  label,
  isLabelHidden = false,
  isSelected,
  isDisabled = false,
  whyNot,
  onChange,
  "aria-label": spokenLabel,
}: SwitchProps) {
  const reason = useId();
  const isBlocked = whyNot !== undefined;
  const ariaLabel = spokenLabel ?? (isLabelHidden ? label : undefined);
  return (
    <label className={styles.switch}>
      <input
        type="checkbox"
        // biome-ignore lint/a11y/useAriaPropsForRole: the browser announces the state of a native checkbox.
        role="switch"
        className={styles.track}
        checked={isSelected}
        disabled={isDisabled && !isBlocked}
        onChange={(event) => isBlocked || onChange(event.target.checked)}
        {...(ariaLabel !== undefined && { "aria-label": ariaLabel })}
        {...(isBlocked && { "aria-disabled": true, "aria-describedby": reason })}
      />
      {!isLabelHidden && label}
      {isBlocked && (
        <span id={reason} className={styles.whyNot} aria-hidden>
          {whyNot}
        </span>
      )}
    </label>
  );
}

export function Checkbox({
  children,
  ...props
}: Omit<CheckboxProps, "className" | "children"> & { children: ReactNode }) {
  return (
    <AriaCheckbox {...props} className={styles.checkbox ?? ""}>
      <span className={styles.box} aria-hidden>
        <Check size={12} strokeWidth={3} />
      </span>
      {children}
    </AriaCheckbox>
  );
}

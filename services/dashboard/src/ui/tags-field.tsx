import { X } from "lucide-react";
import { type ClipboardEvent, type KeyboardEvent, useRef, useState } from "react";
import { Button, FieldError, Input, Label, TextField } from "react-aria-components";
import fields from "./fields.module.css";
import { useSuggestions } from "./suggestions.tsx";
import styles from "./tags-field.module.css";

type TagsFieldProps = {
  label: string;
  isLabelHidden?: boolean;
  tags: readonly string[];
  onChange: (tags: readonly string[]) => void;
  error?: string | undefined;
  placeholder?: string;
  /** Values that the browser offers while a person types. */
  suggestions?: readonly string[];
};

/** Reads tags from a typed or pasted text. */
const tagsIn = (text: string): string[] =>
  text
    .split(/[,;\n]/)
    .map((tag) => tag.trim())
    .filter(Boolean);

/** A list of texts. Enter, a comma or leaving the field adds what was typed; Backspace removes the last one. */
export function TagsField(props: TagsFieldProps) {
  const { label, isLabelHidden, tags, onChange, error, placeholder } = props;
  const [text, setText] = useState("");
  const { list, datalist } = useSuggestions(props.suggestions);
  const frame = useRef<HTMLDivElement>(null);
  const add = (typed: string) => {
    const added = tagsIn(typed).filter((tag) => !tags.includes(tag));
    if (added.length > 0) onChange([...tags, ...new Set(added)]);
    setText("");
  };
  const take = (typed: string) => (typed.includes(",") ? add(typed) : setText(typed));
  const remove = (tag: string) => {
    onChange(tags.filter((other) => other !== tag));
    frame.current?.querySelector("input")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      add(text);
    }
    if (event.key === "Backspace" && text === "") onChange(tags.slice(0, -1));
  };
  const onPaste = (event: ClipboardEvent) => {
    event.preventDefault();
    add(text + event.clipboardData.getData("text"));
  };
  return (
    <TextField
      className={fields.field ?? ""}
      value={text}
      onChange={take}
      onBlur={() => add(text)}
      isInvalid={error !== undefined}
      validationBehavior="aria"
    >
      <Label className={isLabelHidden ? "visually-hidden" : (fields.label ?? "")}>{label}</Label>
      <div ref={frame} className={`${styles.frame} ${error === undefined ? "" : styles.invalid}`}>
        {tags.map((tag) => (
          <span key={tag} className={styles.tag}>
            {tag}
            <Button
              className={styles.remove ?? ""}
              aria-label={`Remove ${tag}`}
              onPress={() => remove(tag)}
            >
              <X size={12} aria-hidden />
            </Button>
          </span>
        ))}
        <Input
          {...list}
          className={styles.input ?? ""}
          spellCheck="false"
          onKeyDown={onKeyDown}
          onPaste={onPaste}
          placeholder={tags.length === 0 ? (placeholder ?? "") : ""}
        />
        {datalist}
      </div>
      <FieldError className={fields.error ?? ""}>{error}</FieldError>
    </TextField>
  );
}

import { Plus, X } from "lucide-react";
import { type FocusEvent, useId, useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { TextField } from "../ui/fields.tsx";
import { useNextFocus } from "../ui/use-next-focus.ts";
import { JsonField } from "./json-field.tsx";
import {
  allKey,
  maxVariations,
  newVariation,
  problemKey,
  type TypedValueType,
  type VariationDraft,
  type VariationProblems,
} from "./variation-drafts.ts";
import styles from "./variations.module.css";

type VariationsEditorProps = {
  type: TypedValueType;
  drafts: readonly VariationDraft[];
  problems: VariationProblems;
  /** Shows all problems. Otherwise, a row shows its problems when the focus has left it. */
  isChecked: boolean;
  onChange: (drafts: readonly VariationDraft[]) => void;
};

/** The variations of a flag: key, value and name of each. */
export function VariationsEditor(props: VariationsEditorProps) {
  const { type, drafts, problems, isChecked, onChange } = props;
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const heading = useId();
  const { part, focusNext } = useNextFocus<HTMLElement>();
  const leave = (uid: string, event: FocusEvent<HTMLElement>) => {
    if (!event.currentTarget.contains(event.relatedTarget))
      setLeft((before) => new Set(before).add(uid));
  };
  const change = (uid: string, changed: Partial<VariationDraft>) =>
    onChange(drafts.map((draft) => (draft.uid === uid ? { ...draft, ...changed } : draft)));
  const add = () => {
    const added = newVariation(type);
    focusNext(added.uid);
    onChange([...drafts, added]);
  };
  const remove = (uid: string) => {
    focusNext(addName);
    onChange(drafts.filter((draft) => draft.uid !== uid));
  };
  return (
    <section ref={part} aria-labelledby={heading} className={styles.editor}>
      <h3 id={heading} className={styles.heading}>
        Variations
      </h3>
      <ol className={styles.rows}>
        {drafts.map((draft, index) => (
          <li key={draft.uid} data-focus={draft.uid} onBlur={(event) => leave(draft.uid, event)}>
            <VariationRow
              type={type}
              draft={draft}
              number={index + 1}
              problems={isChecked || left.has(draft.uid) ? problems : noProblems}
              onChange={(changed) => change(draft.uid, changed)}
              onRemove={() => remove(draft.uid)}
            />
          </li>
        ))}
      </ol>
      {problems.has(allKey) && (
        <p role="alert" className={styles.problem}>
          {problems.get(allKey)}
        </p>
      )}
      <div data-focus={addName}>
        <Button size="small" onPress={add} isDisabled={drafts.length >= maxVariations}>
          <Plus size={14} aria-hidden /> Add variation
        </Button>
      </div>
    </section>
  );
}

/** Names the button that adds a variation, among the identities of the rows. */
const addName = "add";

const noProblems: VariationProblems = new Map();

type VariationRowProps = {
  type: TypedValueType;
  draft: VariationDraft;
  number: number;
  problems: VariationProblems;
  onChange: (changed: Partial<VariationDraft>) => void;
  onRemove: () => void;
};

function VariationRow({ type, draft, number, problems, onChange, onRemove }: VariationRowProps) {
  const { uid, key, name, text } = draft;
  const label = `Variation ${number}`;
  const value = {
    label: "Value",
    value: text,
    onChange: (typed: string) => onChange({ text: typed }),
    error: problems.get(problemKey(uid, "value")),
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is no grid container in all browsers.
    <div role="group" aria-label={label} className={styles.row} data-type={type}>
      <TextField
        label="Key"
        value={key}
        onChange={(typed) => onChange({ key: typed.trim() })}
        isCode
        error={problems.get(problemKey(uid, "key"))}
      />
      <TextField
        label="Name"
        value={name}
        onChange={(typed) => onChange({ name: typed })}
        error={problems.get(problemKey(uid, "name"))}
      />
      <div className={styles.value}>
        {type === "object" ? (
          <JsonField {...value} />
        ) : (
          <TextField
            {...value}
            isCode={type === "number"}
            {...(type === "string" && { rows: 1 })}
          />
        )}
      </div>
      <IconButton icon={X} label={`Remove ${label}`} size="small" onPress={onRemove} />
    </div>
  );
}

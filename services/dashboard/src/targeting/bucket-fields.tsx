import { Disclosure } from "../ui/disclosure.tsx";
import { TextField } from "../ui/fields.tsx";
import { AttributeField } from "./attribute-field.tsx";
import type { Draft } from "./draft.ts";
import { useEditor } from "./editor-context.ts";
import styles from "./targeting.module.css";

/** The fields for the attribute that percentages count, and for the seed of buckets. Most flags leave both as they are. */
export function BucketFields({ draft }: { draft: Draft }) {
  const { edit, base } = useEditor();
  const { bucket_by: attribute = "", bucket_seed: seed = "" } = draft;
  const isOther = attribute !== (base.bucket_by ?? "") || seed !== (base.bucket_seed ?? "");
  return (
    <>
      <Disclosure label={`Percentages by ${attribute === "" ? "user" : attribute}`}>
        {() => (
          <div className={styles.stack}>
            <AttributeField
              label="Percentages by attribute"
              isLabelHidden={false}
              placeholder="id"
              value={attribute}
              onChange={(typed) => edit((before) => withText(before, "bucket_by", typed))}
              except="id"
            />
            <p className={styles.note}>
              Users with the same value of the attribute, such as a company, get the same. Users
              without it are outside every percentage below 100.
            </p>
            <TextField
              label="Seed"
              placeholder="the flag's key"
              value={seed}
              onChange={(typed) => edit((before) => withText(before, "bucket_seed", typed))}
              isCode
              description="Flags with the same seed and attribute select the same users."
            />
          </div>
        )}
      </Disclosure>
      {isOther && (
        <p role="status" className={styles.hint}>
          Percentages and splits select other users when you save.
        </p>
      )}
    </>
  );
}

/** Returns the draft with a text, or without the member if the text is empty: its default applies. */
function withText(draft: Draft, name: "bucket_by" | "bucket_seed", text: string): Draft {
  const { [name]: _, ...others } = draft;
  return text === "" ? others : { ...others, [name]: text };
}

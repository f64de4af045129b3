import { useState } from "react";
import type { Requirement } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { useFlags } from "../flags/flag-queries.ts";
import { ComboBox } from "../ui/combo-box.tsx";
import { Checkbox, Select } from "../ui/fields.tsx";
import styles from "./targeting.module.css";

type RequirementFieldsProps = {
  requirement: Requirement;
  errors: { flag: string | undefined; is: string | undefined };
  autoFocus: boolean;
  onChange: (requirement: Requirement) => void;
};

/** Flags that the field suggests. More typed characters find the others. */
const maxSuggestions = 50;

/** Another flag and the value that it must have for the same user. */
export function RequirementFields(props: RequirementFieldsProps) {
  const { requirement, errors, autoFocus, onChange } = props;
  const { flag: key, is } = requirement;
  const own = useFlagInPage().flag.key;
  const { data: flags = [], isPending } = useFlags();
  const [isOpened, setOpened] = useState(false);
  const typed = key.toLowerCase();
  const suggestions = isOpened
    ? flags
        .filter((flag) => flag.key !== own && flag.key.includes(typed))
        .slice(0, maxSuggestions)
        .map((flag) => flag.key)
    : [];
  const required = flags.find((flag) => flag.key === key);
  const isTyped = required !== undefined && required.value_type !== "boolean";
  const variations = required?.variations?.map((variation) => variation.key) ?? ["on", "off"];
  return (
    <div className={styles.reference}>
      <ComboBox
        label="Required flag"
        placeholder="key of a flag"
        value={key}
        suggestions={suggestions}
        emptyText={isPending ? "Reading the flags…" : "No other flag has this in its key."}
        error={errors.flag}
        autoFocus={autoFocus}
        onFocus={() => setOpened(true)}
        // The variations of another flag have other keys.
        onChange={(flag) => onChange({ flag, is: typeof is === "string" ? is : "on" })}
      />
      <Select
        label="Required value"
        value={typeof is === "string" ? is : "variations"}
        onChange={(chosen) =>
          onChange({ flag: key, is: chosen === "variations" ? variations.slice(0, 1) : chosen })
        }
        options={[...positions, ...(isTyped || typeof is !== "string" ? [servesVariations] : [])]}
        error={errors.is}
      />
      {typeof is !== "string" && (
        <Variations
          {...{ variations, flag: key }}
          chosen={is}
          onChange={(chosen) => onChange({ flag: key, is: chosen })}
        />
      )}
    </div>
  );
}

const positions = [
  { value: "on", label: "is on", note: "for the same user" },
  { value: "off", label: "is off", note: "for the same user" },
] as const;
const servesVariations = {
  value: "variations",
  label: "serves one of these variations",
} as const;

type VariationsProps = {
  flag: string;
  variations: readonly string[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
};

function Variations({ flag, variations, chosen, onChange }: VariationsProps) {
  return (
    <fieldset className={styles.variations} aria-label={`Variations of ${flag}`}>
      {variations.map((variation) => (
        <Checkbox
          key={variation}
          isSelected={chosen.includes(variation)}
          onChange={(isChosen) =>
            onChange(
              variations.filter((other) =>
                other === variation ? isChosen : chosen.includes(other),
              ),
            )
          }
        >
          <code>{variation}</code>
        </Checkbox>
      ))}
    </fieldset>
  );
}

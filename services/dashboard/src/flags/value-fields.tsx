import type { CreateFlag, ValueType } from "../api/schema.d.ts";
import { Select } from "../ui/fields.tsx";
import {
  newVariation,
  type TypedValueType,
  type VariationDraft,
  variationProblems,
  variationsText,
} from "../variations/variation-drafts.ts";
import { VariationsEditor } from "../variations/variations-editor.tsx";
import { valueTypes } from "./flag-search.ts";

/** The values of a flag that is being created. Each type keeps its variations, so that another choice loses none. */
type ValuesDraft = {
  readonly type: ValueType;
  readonly byType: Partial<Record<TypedValueType, readonly VariationDraft[]>>;
};

export const booleanValues: ValuesDraft = { type: "boolean", byType: {} };

/**
 * Returns the text of the request that creates a flag, or undefined while a value has a problem. The text keeps how
 * values are written, which a parsed number would lose.
 */
export function creationText(
  flag: Omit<CreateFlag, "variations" | "value_type">,
  { type, byType }: ValuesDraft,
  locale: string,
): string | undefined {
  if (type === "boolean") return JSON.stringify(flag);
  const drafts = byType[type] ?? [];
  if (variationProblems(type, drafts, locale).size > 0) return undefined;
  const text = JSON.stringify({ ...flag, value_type: type });
  return `${text.slice(0, -1)},"variations":${variationsText(type, drafts, locale)}}`;
}

type ValueFieldsProps = { values: ValuesDraft; onChange: (values: ValuesDraft) => void };

/** The fields for the type of a flag, and for its variations. */
export function ValueFields({ values, onChange }: ValueFieldsProps) {
  const { type, byType } = values;
  const drafts = type === "boolean" ? [] : (byType[type] ?? []);
  const choose = (chosen: ValueType) => {
    if (chosen === "boolean") return onChange({ type: chosen, byType });
    const first = [newVariation(chosen), newVariation(chosen)];
    return onChange({ type: chosen, byType: { [chosen]: first, ...byType } });
  };
  return (
    <>
      <Select
        label="Value"
        value={type}
        onChange={choose}
        options={valueTypes}
        description={
          type === "boolean"
            ? "This cannot change later."
            : "This cannot change later. Users for whom the flag is on get the first variation, all others the last one. You can choose others on the page of the flag."
        }
      />
      {type !== "boolean" && (
        <VariationsEditor
          type={type}
          drafts={drafts}
          problems={variationProblems(type, drafts, navigator.language)}
          isChecked={false}
          onChange={(changed) => onChange({ type, byType: { ...byType, [type]: changed } })}
        />
      )}
    </>
  );
}

import { TextField } from "../ui/fields.tsx";
import { TagsField } from "../ui/tags-field.tsx";
import { useFlags } from "./flag-queries.ts";
import { ownersOf, tagsOf } from "./flag-search.ts";
import { type FlagSettings, tagsFrom, tagsProblem } from "./flag-settings.ts";

type TagsAndOwnerProps = {
  value: Pick<FlagSettings, "tags" | "owner">;
  onChange: (changed: Partial<Pick<FlagSettings, "tags" | "owner">>) => void;
};

/** The fields for the tags and the owner of a flag. They suggest those of the other flags. */
export function TagsAndOwner({ value, onChange }: TagsAndOwnerProps) {
  return (
    <>
      <FlagTagsField label="Tags" tags={value.tags} onChange={(tags) => onChange({ tags })} />
      <OwnerField
        value={value.owner ?? ""}
        onChange={(owner) => onChange({ owner: owner === "" ? null : owner })}
      />
    </>
  );
}

type FlagTagsFieldProps = {
  label: string;
  tags: readonly string[];
  onChange: (tags: string[]) => void;
  /** Without them, the tags of all flags are suggested. */
  suggestions?: readonly string[];
};

export function FlagTagsField({ label, tags, onChange, suggestions }: FlagTagsFieldProps) {
  const { data: flags = [] } = useFlags();
  const offered = suggestions ?? tagsOf(flags);
  return (
    <TagsField
      label={label}
      tags={tags}
      onChange={(typed) => onChange(tagsFrom(typed))}
      suggestions={offered.filter((tag) => !tags.includes(tag))}
      error={tagsProblem(tags)}
      placeholder="For example checkout, beta"
    />
  );
}

export function OwnerField(props: { value: string; onChange: (owner: string) => void }) {
  const { data: flags = [] } = useFlags();
  return (
    <TextField
      {...props}
      label="Owner"
      suggestions={ownersOf(flags)}
      placeholder="The team or person that is responsible"
    />
  );
}

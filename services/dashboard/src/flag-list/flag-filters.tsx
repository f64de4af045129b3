import { ArrowDownNarrowWide, ArrowDownWideNarrow } from "lucide-react";
import { memo, useMemo } from "react";
import { staleDays } from "../flags/flag-queries.ts";
import {
  type FlagSearch,
  flagOrders,
  flagTypes,
  type ListedFlag,
  orderParts,
  ownersOf,
  tagsOf,
} from "../flags/flag-search.ts";
import { useEnvironment } from "../session/environment.tsx";
import { IconButton } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { Checkbox, Select } from "../ui/fields.tsx";

type FlagFiltersProps = { search: FlagSearch; all: readonly ListedFlag[] };

/** The filters and the order of the list. The browser's Back undoes a choice. */
export const FlagFilters = memo(function FlagFilters({ search, all }: FlagFiltersProps) {
  const filter = useChangeSearch<FlagSearch>({ isEntry: true });
  const { environment } = useEnvironment();
  const tags = useMemo(() => tagsOf(all), [all]);
  const owners = useMemo(() => ownersOf(all), [all]);
  return (
    <>
      <Select
        label="Type"
        isLabelHidden
        value={search.type ?? "all"}
        onChange={(type) => filter({ type: type === "all" ? undefined : type })}
        options={[{ value: "all", label: "All types" }, ...flagTypes]}
      />
      <Select
        label={`State in ${environment.name}`}
        isLabelHidden
        value={search.state ?? "all"}
        onChange={(state) => filter({ state: state === "all" ? undefined : state })}
        options={[
          { value: "all", label: "On or off" },
          { value: "on", label: `On in ${environment.name}` },
          { value: "off", label: `Off in ${environment.name}` },
        ]}
      />
      <ValueFilter
        label="Tag"
        all="All tags"
        values={tags}
        value={search.tag}
        onChange={(tag) => filter({ tag })}
      />
      <ValueFilter
        label="Owner"
        all="All owners"
        values={owners}
        value={search.owner}
        onChange={(owner) => filter({ owner })}
      />
      <Select
        label="Archive"
        isLabelHidden
        value={search.archived ?? "without"}
        onChange={(archived) => filter({ archived: archived === "without" ? undefined : archived })}
        options={[
          { value: "without", label: "Not archived" },
          { value: "only", label: "Archived" },
          { value: "with", label: "Archived or not" },
        ]}
      />
      <FlagOrderChoice search={search} onChange={filter} />
      <Checkbox
        isSelected={search.stale === true}
        onChange={(stale) => filter({ stale: stale || undefined })}
      >
        Not evaluated for {staleDays} days
      </Checkbox>
    </>
  );
});

type ValueFilterProps = {
  label: string;
  /** Text of the choice without a filter. */
  all: string;
  values: readonly string[];
  value: string | undefined;
  onChange: (value: string | undefined) => void;
};

/** A filter for one of the values that flags have. Values have a prefix, so that none is the choice without a filter. */
function ValueFilter({ label, all, values, value, onChange }: ValueFilterProps) {
  if (values.length === 0 && value === undefined) return null;
  const offered = value === undefined || values.includes(value) ? values : [value, ...values];
  return (
    <Select
      label={label}
      isLabelHidden
      value={value === undefined ? "" : `=${value}`}
      onChange={(chosen) => onChange(chosen === "" ? undefined : chosen.slice(1))}
      options={[
        { value: "", label: all },
        ...offered.map((each) => ({ value: `=${each}`, label: each })),
      ]}
    />
  );
}

type FlagOrderChoiceProps = { search: FlagSearch; onChange: (search: FlagSearch) => void };

function FlagOrderChoice({ search, onChange }: FlagOrderChoiceProps) {
  const { field, isDescending } = orderParts(search.sort ?? "key");
  const set = (next: typeof field, descending: boolean) => {
    const order = descending ? (`-${next}` as const) : next;
    onChange({ sort: order === "key" ? undefined : order });
  };
  return (
    <>
      <Select
        label="Order"
        isLabelHidden
        value={field}
        onChange={(next) => set(next, isDescending)}
        options={flagOrders}
      />
      <IconButton
        icon={isDescending ? ArrowDownWideNarrow : ArrowDownNarrowWide}
        label={isDescending ? "Sort ascending" : "Sort descending"}
        onPress={() => set(field, !isDescending)}
      />
    </>
  );
}

import { X } from "lucide-react";
import type { AuditedChange } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { DateField } from "../ui/date-field.tsx";
import { Select } from "../ui/fields.tsx";
import { Filters } from "../ui/page.tsx";
import { FlagPicker } from "./flag-picker.tsx";
import { type Person, peopleIn, usePersonName, useRecentPeople } from "./history-queries.ts";
import { type Action, actionLabels, type HistorySearch, isFiltered } from "./history-search.ts";

const actions = Object.entries(actionLabels).map(([value, label]) => ({
  value: value as Action,
  label,
}));

type HistoryFiltersProps = {
  search: HistorySearch;
  changes: readonly AuditedChange[];
  onFilter: (changed: HistorySearch) => void;
  onClear: () => void;
};

/** The filters of the history. `changes` are the entries on the page, whose people and flags they know. */
export function HistoryFilters({ search, changes, onFilter, onClear }: HistoryFiltersProps) {
  const flagKey = changes.find(({ flag_id }) => flag_id === search.flag)?.flag_key;
  return (
    <Filters>
      <FlagPicker
        chosen={search.flag}
        chosenKey={flagKey ?? undefined}
        onChoose={(flag) => onFilter({ flag })}
      />
      <PersonSelect person={search.person} changes={changes} onFilter={onFilter} />
      <Select<Action | "all">
        label="Kind of change"
        isLabelHidden
        value={search.action ?? "all"}
        onChange={(action) => onFilter({ action: action === "all" ? undefined : action })}
        options={[{ value: "all", label: "All changes" }, ...actions]}
      />
      <DateField label="From" value={search.from} onChange={(from) => onFilter({ from })} />
      <DateField label="to" value={search.to} onChange={(to) => onFilter({ to })} />
      {isFiltered(search) && (
        <Button variant="quiet" onPress={onClear}>
          <X size={14} aria-hidden /> Clear filters
        </Button>
      )}
    </Filters>
  );
}

type PersonSelectProps = {
  person: string | undefined;
  changes: readonly AuditedChange[];
  onFilter: (changed: HistorySearch) => void;
};

function PersonSelect({ person, changes, onFilter }: PersonSelectProps) {
  const { me } = useKeySession();
  const { data: recent = [] } = useRecentPeople();
  const name = usePersonName(person ?? me.user.id);
  const known: Person[] = [...recent, ...peopleIn(changes), me.user];
  if (person !== undefined) known.push({ id: person, email: name ?? "another person" });
  // The first name of an id counts, because the last one can be a placeholder.
  const people = new Map(known.toReversed().map(({ id, email }) => [id, email]));
  const options = [...people]
    .map(([value, label]) => ({ value, label: value === me.user.id ? `${label} (you)` : label }))
    .toSorted((a, b) => a.label.localeCompare(b.label));
  return (
    <Select
      label="Person"
      isLabelHidden
      value={person ?? "all"}
      onChange={(id) => onFilter({ person: id === "all" ? undefined : id })}
      options={[{ value: "all", label: "Everybody" }, ...options]}
    />
  );
}

import { useSearch } from "@tanstack/react-router";
import { Plus, SearchX } from "lucide-react";
import { memo, useCallback, useDeferredValue, useMemo, useState } from "react";
import { useEnvironment } from "../session/environment.tsx";
import { Button } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { Checkbox, SearchField, Select } from "../ui/fields.tsx";
import { Filters, Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { useSearchText } from "../ui/use-search-text.ts";
import { CreateFlagDialog } from "./create-flag-dialog.tsx";
import { FirstFlag } from "./first-flag.tsx";
import { FlagList } from "./flag-list.tsx";
import { staleDays, useFlags, useStaleIds } from "./flag-queries.ts";
import { type FlagSearch, filterFlags, flagTypes, type ListedFlag } from "./flag-search.ts";

/** The flags of the project: search, filters, every environment's state, and a switch for the chosen one. */
export function FlagsPage() {
  const [isCreating, setCreating] = useState(false);
  const flags = useFlags();
  const create = () => setCreating(true);
  return (
    <Page
      title="Flags"
      actions={
        flags.data?.length !== 0 && (
          <Button variant="primary" onPress={create}>
            <Plus size={16} aria-hidden /> Create flag
          </Button>
        )
      }
    >
      <QueryView query={flags} label="Loading the flags">
        {(all) =>
          all.length === 0 ? <FirstFlag onCreate={create} /> : <FilteredFlags all={all} />
        }
      </QueryView>
      {isCreating && <CreateFlagDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

function FilteredFlags({ all }: { all: readonly ListedFlag[] }) {
  const inAddress = useSearch({ from: "/flags" });
  const filter = useChangeSearch<FlagSearch>();
  const write = useCallback((q: string) => filter({ q: q === "" ? undefined : q }), [filter]);
  const [text, setText] = useSearchText(inAddress.q ?? "", write);
  // Typing stays responsive: the field updates first, and the list follows.
  const q = useDeferredValue(text);
  const search = useMemo(() => ({ ...inAddress, q }), [inAddress, q]);
  const staleIds = useStaleIds(search.stale === true);
  const clear = useCallback(() => {
    setText("");
    filter({ q: undefined, type: undefined, state: undefined, stale: undefined });
  }, [filter, setText]);
  return (
    <>
      <Filters>
        <SearchField
          label="Search flags by key, name or description"
          placeholder="Search by key, name or description"
          value={text}
          onChange={setText}
        />
        <FlagFilters search={inAddress} />
      </Filters>
      {search.stale === true ? (
        <QueryView query={staleIds} label="Loading the flags that are not evaluated">
          {(ids) => <FoundFlags all={all} search={search} staleIds={ids} onClear={clear} />}
        </QueryView>
      ) : (
        <FoundFlags all={all} search={search} staleIds={undefined} onClear={clear} />
      )}
    </>
  );
}

type FoundFlagsProps = {
  all: readonly ListedFlag[];
  search: FlagSearch;
  /** Ids of the flags that are not evaluated, if the search is for them. */
  staleIds: ReadonlySet<string> | undefined;
  onClear: () => void;
};

const FoundFlags = memo(function FoundFlags({ all, search, staleIds, onClear }: FoundFlagsProps) {
  const { environment } = useEnvironment();
  const shown = filterFlags(all, search, { environmentId: environment.id, staleIds });
  return (
    <>
      <p aria-live="polite" className="visually-hidden">
        {shown.length} of {all.length} flags
      </p>
      {shown.length === 0 ? (
        <EmptyState
          icon={SearchX}
          title="No flag matches"
          action={<Button onPress={onClear}>Clear search and filters</Button>}
        >
          {search.stale === true
            ? `Every flag was evaluated within the last ${staleDays} days, or the other filters exclude it.`
            : "Change the search or the filters."}
        </EmptyState>
      ) : (
        <FlagList flags={shown} environment={environment} total={all.length} />
      )}
    </>
  );
});

const FlagFilters = memo(function FlagFilters({ search }: { search: FlagSearch }) {
  const filter = useChangeSearch<FlagSearch>();
  const { environment } = useEnvironment();
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
      <Checkbox
        isSelected={search.stale === true}
        onChange={(stale) => filter({ stale: stale || undefined })}
      >
        Not evaluated for {staleDays} days
      </Checkbox>
    </>
  );
});

import { useSearch } from "@tanstack/react-router";
import { Plus, SearchX } from "lucide-react";
import { lazy, memo, Suspense, useCallback, useDeferredValue, useMemo, useState } from "react";
import { FirstFlag } from "../flags/first-flag.tsx";
import { staleDays, useFirstFlags, useFlags, useStaleIds } from "../flags/flag-queries.ts";
import {
  type FlagSearch,
  filterFlags,
  isListed,
  type ListedFlag,
  readFlagSearch,
  sortFlags,
} from "../flags/flag-search.ts";
import { useEnvironment } from "../session/environment.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { SearchField } from "../ui/fields.tsx";
import { Filters, Page } from "../ui/page.tsx";
import { EmptyState, Loading } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { useSearchText } from "../ui/use-search-text.ts";
import { FlagFilters } from "./flag-filters.tsx";
import { FlagList } from "./flag-list.tsx";

const CreateFlagDialog = lazy(async () => ({
  default: (await import("../flags/create-flag-dialog.tsx")).CreateFlagDialog,
}));

/** The flags of the project: search, filters, every environment's state, and a switch for the chosen one. */
export function FlagsPage() {
  const [isCreating, setCreating] = useState(false);
  const { reason } = usePermission("create_flags");
  const flags = useFlags();
  const first = useFirstFlags();
  const isComplete = flags.data !== undefined;
  const shown = { data: flags.data ?? first, error: flags.error, refetch: flags.refetch };
  const create = () => setCreating(true);
  return (
    <Page
      title="Flags"
      actions={
        flags.data?.length !== 0 && (
          <Button variant="primary" onPress={create} whyNot={reason}>
            <Plus size={16} aria-hidden /> Create flag
          </Button>
        )
      }
    >
      <QueryView query={shown} label="Loading the flags">
        {(all) =>
          all.length === 0 ? (
            <FirstFlag onCreate={create} />
          ) : (
            <FilteredFlags all={all} isComplete={isComplete} />
          )
        }
      </QueryView>
      <Suspense>{isCreating && <CreateFlagDialog onClose={() => setCreating(false)} />}</Suspense>
    </Page>
  );
}

type FilteredFlagsProps = {
  all: readonly ListedFlag[];
  /** False while only the first flags are read. */
  isComplete: boolean;
};

function FilteredFlags({ all, isComplete }: FilteredFlagsProps) {
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
    filter(readFlagSearch({}));
  }, [filter, setText]);
  const found = { all, isComplete, search, onClear: clear };
  return (
    <>
      <Filters>
        <SearchField
          label="Search flags by key, name, description, tag or owner"
          placeholder="Search by key, name, tag or owner"
          value={text}
          onChange={setText}
        />
        <FlagFilters search={inAddress} all={all} />
      </Filters>
      {search.stale === true ? (
        <QueryView query={staleIds} label="Loading the flags that are not evaluated">
          {(ids) => <FoundFlags {...found} staleIds={ids} />}
        </QueryView>
      ) : (
        <FoundFlags {...found} staleIds={undefined} />
      )}
    </>
  );
}

type FoundFlagsProps = FilteredFlagsProps & {
  search: FlagSearch;
  /** Ids of the flags that are not evaluated, if the search is for them. */
  staleIds: ReadonlySet<string> | undefined;
  onClear: () => void;
};

const FoundFlags = memo(function FoundFlags(props: FoundFlagsProps) {
  const { all, isComplete, search, staleIds, onClear } = props;
  const { environment } = useEnvironment();
  const shown = useMemo(() => {
    const scope = { environmentId: environment.id, staleIds };
    return sortFlags(filterFlags(all, search, scope), search.sort);
  }, [all, search, environment.id, staleIds]);
  const total = useMemo(
    () => all.filter((flag) => isListed(flag, search.archived)).length,
    [all, search.archived],
  );
  // The first flags by key are not the first ones in another order, and not all that match.
  if (!isComplete && (shown.length === 0 || search.sort !== undefined))
    return <Loading label="Loading the flags" />;
  return (
    <>
      <p aria-live="polite" className="visually-hidden">
        {shown.length} of {total} flags
      </p>
      {shown.length === 0 ? (
        <EmptyState
          icon={SearchX}
          title="No flag matches"
          action={<Button onPress={onClear}>Clear search and filters</Button>}
        >
          {search.stale === true
            ? `Every flag was evaluated within the last ${staleDays} days, or the other filters exclude it.`
            : "Change the search or the filters. They exclude archived flags unless you choose otherwise."}
        </EmptyState>
      ) : (
        <FlagList flags={shown} environment={environment} total={isComplete ? total : undefined} />
      )}
    </>
  );
});

import { useSearch } from "@tanstack/react-router";
import { History as HistoryIcon } from "lucide-react";
import { useMemo } from "react";
import type { AuditedChange } from "../api/schema.d.ts";
import { useKeyNames } from "../changes/key-names.ts";
import { useFlags } from "../flags/flag-queries.ts";
import { permissionsOf } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { ChangeEntry, type Existing } from "./change-entry.tsx";
import { DownloadButton } from "./download-button.tsx";
import { groupByDay } from "./group-by-day.ts";
import styles from "./history.module.css";
import { HistoryFilters } from "./history-filters.tsx";
import { useBypassed, useChanges, useWebhookIds } from "./history-queries.ts";
import { type HistorySearch, isFiltered, queryOf } from "./history-search.ts";

const noFilters: HistorySearch = {
  flag: undefined,
  person: undefined,
  action: undefined,
  from: undefined,
  to: undefined,
};

/** The audit log of the project: who changed what, and when. */
export function HistoryPage() {
  const search = useSearch({ from: "/history" });
  const filter = useChangeSearch<HistorySearch>();
  const { me } = useKeySession();
  const filters = queryOf(search);
  const query = useChanges(filters);
  const changes = useMemo(
    () => query.data?.pages.flatMap((page) => page.changes) ?? [],
    [query.data],
  );
  const clear = () => filter(noFilters);
  return (
    <Page
      title="History"
      lead={`Everything that people and schedules changed in ${me.project.name}.`}
      actions={<DownloadButton filters={filters} />}
    >
      <LimitedKey />
      <HistoryFilters search={search} changes={changes} onFilter={filter} onClear={clear} />
      <QueryView query={query} label="Loading the history">
        {() =>
          changes.length === 0 ? (
            <NoChanges isFiltered={isFiltered(search)} onClear={clear} />
          ) : (
            <>
              <Days changes={changes} />
              <div className={styles.older}>
                {query.hasNextPage ? (
                  <Button
                    onPress={() => void query.fetchNextPage()}
                    isPending={query.isFetchingNextPage}
                  >
                    Load older changes
                  </Button>
                ) : (
                  <p className={styles.note}>There are no older changes.</p>
                )}
              </div>
            </>
          )
        }
      </QueryView>
    </Page>
  );
}

function Days({ changes }: { changes: readonly AuditedChange[] }) {
  const existing = useExisting(changes);
  return groupByDay(changes, new Date()).map(({ label, changes: ofDay }) => (
    <section key={label} aria-label={label}>
      <h2 className={styles.day}>{label}</h2>
      <ol className={styles.entries}>
        {ofDay.map((change) => (
          <ChangeEntry key={change.id} change={change} existing={existing} />
        ))}
      </ol>
    </section>
  ));
}

function useExisting(changes: readonly AuditedChange[]): Existing {
  const session = useKeySession();
  const { me } = session;
  const { data: flags } = useFlags();
  const hasWebhooks = changes.some(({ webhook_id }) => webhook_id !== null);
  const webhooks = useWebhookIds(hasWebhooks && permissionsOf(session).mayUseWebhooks);
  const keyNames = useKeyNames();
  const bypassed = useBypassed(changes.some(({ cause_id: cause }) => cause !== undefined));
  return useMemo(
    () => ({
      environments: new Map(me.environments.map(({ id, name }) => [id, name])),
      flags: new Set(flags?.map(({ id }) => id)),
      webhooks: webhooks ?? new Set(),
      keyNames: keyNames ?? new Map(),
      bypassed,
    }),
    [me, flags, webhooks, keyNames, bypassed],
  );
}

/** Says that a key of one environment does not see everything. */
function LimitedKey() {
  const { me } = useKeySession();
  if (!me.key.environment_only) return null;
  const own = me.environments.find(({ id }) => id === me.key.environment_id);
  return (
    <Warning>
      Your key is limited to {own?.name ?? "its environment"}, so you see only the changes there.
      Changes of other environments, of settings of flags, of webhooks, of users and of the project
      are missing.
    </Warning>
  );
}

function NoChanges({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  const { me } = useKeySession();
  const curl = `curl "${window.location.origin}/api/v1/projects/${me.project.id}/changes?limit=10" \\
  -H "Authorization: Bearer $HALYARD_SERVER_KEY"`;
  return (
    <EmptyState
      icon={HistoryIcon}
      title={isFiltered ? "No change matches" : "Nothing has changed yet"}
      action={isFiltered && <Button onPress={onClear}>Clear filters</Button>}
      examples={<CodeBlock title="Read the history over the API" code={curl} />}
    >
      {isFiltered
        ? "Choose other days, another person or another kind of change."
        : "Turn a flag on or off: the change appears here immediately."}
    </EmptyState>
  );
}

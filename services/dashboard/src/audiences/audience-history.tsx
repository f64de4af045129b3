import { useInfiniteQuery } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import type { AudienceChange, AudienceHistoryEntry } from "../api/schema.d.ts";
import { usePersonName } from "../history/history-queries.ts";
import { audienceKey as keyOf } from "../references/audience-queries.ts";
import { useKeySession } from "../session/session.tsx";
import { Differences } from "../state/differences.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { localTime } from "../ui/dates.ts";
import { count } from "../ui/numbers.ts";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import { audienceDifferences } from "./audience-draft.ts";
import styles from "./audiences.module.css";

const entriesPerPage = 20;

function useAudienceHistory(key: string) {
  const { api } = useKeySession();
  return useInfiniteQuery({
    queryKey: [...keyOf(key), "history"],
    initialPageParam: undefined as number | undefined,
    queryFn: ({ pageParam: before, signal }) => {
      const query = { limit: entriesPerPage, ...(before !== undefined && { before }) };
      const params = { path: { key }, query };
      return unwrap(api.GET("/api/v1/audiences/{key}/history", { params, signal }));
    },
    getNextPageParam: ({ next_before }) => next_before ?? undefined,
  });
}

/** The versions of an audience, the newest first, and what differs between them. */
export function AudienceHistory({ audienceKey }: { audienceKey: string }) {
  const query = useAudienceHistory(audienceKey);
  return (
    <Card title="History">
      <QueryView query={query} label="Loading the history">
        {({ pages }) => {
          const entries = withMatches(pages.flatMap(({ history }) => history));
          return (
            <ol className={styles.history} aria-label={`Versions of ${audienceKey}`}>
              {entries.map((entry, index) => (
                <Entry key={entry.version} entry={entry} previous={entries[index + 1]} />
              ))}
            </ol>
          );
        }}
      </QueryView>
      {query.hasNextPage && (
        <Button onPress={() => void query.fetchNextPage()} isPending={query.isFetchingNextPage}>
          Load older versions
        </Button>
      )}
    </Card>
  );
}

/** A change of the list has no conditions, because they are those of the version before. The newest version is first. */
function withMatches(entries: readonly AudienceHistoryEntry[]): AudienceHistoryEntry[] {
  let match: AudienceHistoryEntry["match"];
  const filled: AudienceHistoryEntry[] = [];
  for (const entry of entries.toReversed()) {
    match = entry.match ?? match;
    filled.push(match === undefined ? entry : { ...entry, match });
  }
  return filled.reverse();
}

const changeTexts: Readonly<Record<AudienceChange, string>> = {
  created: "Created",
  updated: "Settings",
  list: "List",
  deleted: "Deleted",
};

type EntryProps = { entry: AudienceHistoryEntry; previous: AudienceHistoryEntry | undefined };

function Entry({ entry, previous }: EntryProps) {
  const person = usePersonName(entry.changed_by);
  const { change, added, removed } = entry;
  const when = localTime(new Date(entry.changed_at));
  return (
    <li>
      <p>
        <strong>{person ?? "Someone"}</strong> <Badge>{changeTexts[change]}</Badge>{" "}
        <Time at={entry.changed_at} />
      </p>
      {(added !== undefined || removed !== undefined) && (
        <p className={styles.note}>
          {count(added ?? 0)} entries added, {count(removed ?? 0)} removed
        </p>
      )}
      {previous !== undefined && (
        <Differences
          items={audienceDifferences(previous, entry)}
          label={`Differences of ${when}`}
        />
      )}
    </li>
  );
}

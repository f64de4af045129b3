import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type Api, unwrap } from "../api/client.ts";
import type { AuditedChange, Environment, HistoryEntry } from "../api/schema.d.ts";
import { useKeyNames } from "../changes/key-names.ts";
import { personQuery } from "../changes/people.ts";
import { readChanges } from "../changes/read-changes.ts";
import { nilId, signedInBy } from "../changes/signed-in-by.ts";
import type { ListedFlag } from "../flags/flag-search.ts";
import { statePathOf, stateRoute } from "../flags/state-route.ts";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { readWebhooks } from "../webhooks/webhook-queries.ts";
import type { ChangesQuery } from "./history-search.ts";

/** States that one request of the tab reads. */
const statesPerPage = 20;

export type History = {
  /** The newest first. */
  readonly entries: readonly HistoryEntry[];
  /** True if the last entry is the first state of the flag that Halyard keeps. */
  readonly isComplete: boolean;
};

type Place = { flag: ListedFlag; environment: Environment };

async function readHistory(
  api: Api,
  place: Place,
  query: { limit: number; before?: string },
): Promise<{ entries: readonly HistoryEntry[]; nextBefore: string | undefined }> {
  const params = { path: statePathOf(place), query };
  const { history, next_before } = await unwrap(api.GET(`${stateRoute}/history`, { params }));
  return { entries: history, nextBefore: next_before ?? undefined };
}

/** Reads the states of a flag in an environment, the newest first. */
export function useHistory(place: Place) {
  const { api } = useKeySession();
  const [wantedPages, setWantedPages] = useState(1);
  const query = useInfiniteQuery({
    queryKey: ["flag", place.flag.key, "history", place.environment.id],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: before }) =>
      readHistory(api, place, { limit: statesPerPage, ...(before && { before }) }),
    getNextPageParam: ({ nextBefore }) => nextBefore,
  });
  const { data, error, hasNextPage, isFetching, fetchNextPage, refetch } = query;
  const pages = data?.pages ?? [];
  // A live change cancels the read of an older page, which is then repeated.
  const isMissing = hasNextPage && !isFetching && error === null && pages.length < wantedPages;
  useEffect(() => {
    if (isMissing) void fetchNextPage();
  }, [isMissing, fetchNextPage]);
  return {
    ...{ error, refetch, hasOlder: hasNextPage },
    data: data && { entries: pages.flatMap(({ entries }) => entries), isComplete: !hasNextPage },
    isReadingOlder: query.isFetchingNextPage || isMissing,
    readOlder(): void {
      setWantedPages(pages.length + 1);
      void fetchNextPage();
    },
  };
}

/** Audit entries of a flag in which the authors of its states are looked up. */
const maxEntriesOfFlag = 200;

/** How the author of a state made it. */
export type Authorship = {
  /** Says how the author was signed in. Empty if that is unknown. */
  signedInBy: string;
  /** The id of the change request that made the state. */
  causeId?: string | undefined;
};

/**
 * Returns a function that says how the author of a state made it. The history does not contain that, but the entry of the
 * same change in the audit log does. For older states, it is unknown.
 */
export function useAuthorship(flag: { id: string }): (state: HistoryEntry) => Authorship {
  const { data: changes = [] } = useKeyQuery(
    ["changes", "of", flag.id],
    async (session, signal) => {
      const query = { flag_id: flag.id, limit: maxEntriesOfFlag };
      return (await readChanges(session, query, signal)).changes;
    },
  );
  const keyNames = useKeyNames();
  return (state) => {
    const change = changes.find(
      ({ changed_at: at, actor }) => at === state.changed_at && actor.id === state.changed_by,
    );
    if (change === undefined) return { signedInBy: "" };
    return { signedInBy: signedInBy(change, keyNames), causeId: change.cause_id };
  };
}

/** Newest bypasses in which those of shown changes are looked up. */
const maxBypasses = 100;

/** Reads the ids of the change requests that were applied without their approvals. */
export function useBypassed(isWanted: boolean): ReadonlySet<string> {
  const read = async (session: KeySession, signal: AbortSignal) => {
    const query = { action: "change_request_bypassed" as const, limit: maxBypasses };
    const { changes } = await readChanges(session, query, signal);
    return new Set(changes.flatMap(({ cause_id: id }) => id ?? [])) as ReadonlySet<string>;
  };
  return useKeyQuery(["changes", "bypasses"], read, { enabled: isWanted }).data ?? noBypasses;
}

const noBypasses: ReadonlySet<string> = new Set();

/** The effect of a rollback or of a restored state, upon a version of the current state. */
export type Preview = {
  version: number;
  current: HistoryEntry | undefined;
  wanted: HistoryEntry | undefined;
};

/**
 * Reads the effect of restoring `target`, or of a rollback without one. It reads the version before the history: if the
 * state changes in between, the API rejects a change with this version. So a change never differs from its preview.
 */
export async function readPreview(
  api: Api,
  place: Place,
  target: HistoryEntry | undefined,
): Promise<Preview> {
  const params = { path: statePathOf(place) };
  const { version } = await unwrap(api.GET(stateRoute, { params }));
  const [current, earlier] = (await readHistory(api, place, { limit: 2 })).entries;
  return { version, current, wanted: target ?? earlier };
}

/** Returns the e-mail of the person with this id, who has changed something. */
export function usePersonName(id: string): string | undefined {
  const session = useKeySession();
  const { me } = session;
  const isKnown = id === me.user.id || id === nilId;
  const { data } = useQuery({ ...personQuery(session, id), enabled: !isKnown });
  if (id === nilId) return "operator";
  return id === me.user.id ? me.user.email : (data ?? undefined);
}

/** Entries that one request of the list reads. */
const pageSize = 50;

/** Reads the audit log of the project, the newest changes first. */
export function useChanges(filters: ChangesQuery) {
  const session = useKeySession();
  return useInfiniteQuery({
    queryKey: ["changes", filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...filters, limit: pageSize, ...(pageParam && { cursor: pageParam }) };
      return readChanges(session, query, signal);
    },
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  });
}

/** Entries whose authors the filter offers. Those of older entries appear when these are loaded. */
const entriesWithPeople = 200;

/** Reads the authors of recent changes. */
export const useRecentPeople = () =>
  useKeyQuery(["people"], async (session, signal) =>
    peopleIn((await readChanges(session, { limit: entriesWithPeople }, signal)).changes),
  );

export type Person = { readonly id: string; readonly email: string };

/** Returns the authors of changes. The operator and services share one id. */
export function peopleIn(changes: readonly AuditedChange[]): Person[] {
  const people = new Map(
    changes.map(({ actor }) => [
      actor.id,
      actor.id === nilId ? "operator and services" : actor.email,
    ]),
  );
  return [...people].map(([id, email]) => ({ id, email }));
}

/** Reads the ids of the webhooks that exist, so that entries of deleted ones have no links. */
export function useWebhookIds(isWanted: boolean): ReadonlySet<string> | undefined {
  const read = async (session: KeySession, signal: AbortSignal) =>
    new Set((await readWebhooks(session, signal)).map(({ id }) => id)) as ReadonlySet<string>;
  return useKeyQuery(["webhooks", "ids"], read, { enabled: isWanted }).data;
}

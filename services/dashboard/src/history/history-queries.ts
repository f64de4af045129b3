import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import type { AuditedChange, Environment, HistoryEntry } from "../api/schema.d.ts";
import type { ListedFlag } from "../flags/flag-search.ts";
import { useKeySession } from "../session/session.tsx";
import type { ChangesQuery } from "./history-search.ts";

/** States that the tab shows. */
export const shownStates = 20;

/** The author of changes of the operator and of services. */
const nilId = "00000000-0000-0000-0000-000000000000";

export type History = {
  /** The newest first. It can have one entry more than are shown, to compare the last one with. */
  readonly entries: readonly HistoryEntry[];
  /** Returns whether the last entry is the first state of the flag. */
  readonly isComplete: boolean;
};

export type Place = { flag: ListedFlag; environment: Environment };

async function readHistory(
  api: Api,
  { flag, environment }: Place,
  limit: number,
): Promise<History> {
  const path = { flagId: flag.id, envId: environment.id };
  const { history, next_before } = await unwrap(
    api.GET("/api/v1/flags/{flagId}/environments/{envId}/history", {
      params: { path, query: { limit } },
    }),
  );
  return { entries: history, isComplete: next_before === null };
}

/** Reads the last states of a flag in an environment. */
export function useHistory(place: Place) {
  const { api } = useKeySession();
  return useQuery({
    queryKey: ["flag", place.flag.key, "history", place.environment.id],
    queryFn: () => readHistory(api, place, shownStates + 1),
  });
}

/** The effect of a rollback. `version` is that of the state which it undoes. */
export type Preview = { version: number; entries: readonly HistoryEntry[] };

/**
 * Reads the effect of a rollback. It reads the version before the history: if the state changes in between, the API
 * rejects the rollback with this version. So a rollback never differs from its preview.
 */
export async function readPreview(api: Api, place: Place): Promise<Preview> {
  const path = { flagId: place.flag.id, envId: place.environment.id };
  const { version } = await unwrap(
    api.GET("/api/v1/flags/{flagId}/environments/{envId}", { params: { path } }),
  );
  const { entries } = await readHistory(api, place, 2);
  return { version, entries };
}

/**
 * Returns the e-mail of the person with this id. The API has no list of users for server keys, but everybody who changed
 * something is in the audit log.
 */
export function usePersonName(id: string): string | undefined {
  const { api, me } = useKeySession();
  const isKnown = id === me.user.id || id === nilId;
  const { data } = useQuery({
    queryKey: ["person", id],
    enabled: !isKnown,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const params = { path: { projectId: me.project.id }, query: { actor_id: id, limit: 1 } };
      const { changes } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/changes", { params, signal }),
      );
      return changes[0]?.actor.email ?? null;
    },
  });
  if (id === nilId) return "operator";
  return id === me.user.id ? me.user.email : (data ?? undefined);
}

/** Entries that one request of the list reads. */
const pageSize = 50;

/** Reads the audit log of the project, the newest changes first. */
export function useChanges(filters: ChangesQuery) {
  const { api, me } = useKeySession();
  return useInfiniteQuery({
    queryKey: ["changes", filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...filters, limit: pageSize, ...(pageParam && { cursor: pageParam }) };
      const params = { path: { projectId: me.project.id }, query };
      return unwrap(api.GET("/api/v1/projects/{projectId}/changes", { params, signal }));
    },
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  });
}

/** Entries whose authors the filter offers. Those of older entries appear when these are loaded. */
const entriesWithPeople = 200;

/** Reads the authors of recent changes. */
export function useRecentPeople() {
  const { api, me } = useKeySession();
  return useQuery({
    queryKey: ["people"],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId: me.project.id }, query: { limit: entriesWithPeople } };
      const { changes } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/changes", { params, signal }),
      );
      return peopleIn(changes);
    },
  });
}

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
  const { api, me } = useKeySession();
  const { data } = useQuery({
    queryKey: ["webhooks", "ids"],
    enabled: isWanted,
    queryFn: async ({ signal }) => {
      const params = { path: { projectId: me.project.id } };
      const { webhooks } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/webhooks", { params, signal }),
      );
      return new Set(webhooks.map(({ id }) => id)) as ReadonlySet<string>;
    },
  });
  return data;
}

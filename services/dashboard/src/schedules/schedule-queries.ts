import { type QueryClient, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import type { Schedule } from "../api/schema.d.ts";
import type { FlagInPage } from "../flags/flag-page.tsx";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";

/** Past schedules that the tab of a flag shows. */
const maxPast = 20;
const pageSize = 500;
/** Maximum pages of pending schedules that are read to order them by time. */
const maxPages = 20;
/** Time after a change is due until it is read again, and shortest time between two such reads. */
const settleMs = 1_500;
const maxTimerMs = 2 ** 31 - 1;

/** Returns the delay until the next change is due. A change without effect sends no event, so only a refetch shows it. */
function untilDue(schedules: readonly Schedule[] | undefined): number | false {
  const due = (schedules ?? []).flatMap(({ changes }) =>
    changes.filter(({ state }) => state === "pending").map(({ at }) => Date.parse(at)),
  );
  if (due.length === 0) return false;
  return Math.min(maxTimerMs, Math.max(0, Math.min(...due) - Date.now()) + settleMs);
}

/** Reads the schedules of a flag in an environment, newest first. At most one is pending. */
export function useFlagSchedules({ flag, environment }: FlagInPage) {
  const read = ({ api }: KeySession) => readFlagSchedules(api, { flag, environment });
  return useKeyQuery(["flag", flag.key, "schedule", environment.id], read, {
    refetchInterval: ({ state }) => untilDue(state.data),
  });
}

export async function readFlagSchedules(
  api: Api,
  { flag, environment }: Pick<FlagInPage, "environment"> & { flag: { id: string } },
): Promise<readonly Schedule[]> {
  const query = { flag_id: flag.id, environment_id: environment.id, limit: maxPast };
  const { schedules } = await unwrap(api.GET("/api/v1/schedules", { params: { query } }));
  return schedules;
}

/** Reads all pending schedules of the project. */
export function usePendingSchedules() {
  const { api } = useKeySession();
  return useQuery({
    queryKey: ["schedules", "pending"],
    queryFn: async ({ signal }): Promise<readonly Schedule[]> => {
      const all: Schedule[] = [];
      let cursor: string | null | undefined;
      for (let page = 0; page < maxPages && cursor !== null; page++) {
        const query = {
          status: "pending" as const,
          limit: pageSize,
          ...(cursor !== undefined && { cursor }),
        };
        const found = await unwrap(api.GET("/api/v1/schedules", { params: { query }, signal }));
        all.push(...found.schedules);
        cursor = found.next_cursor;
      }
      return all;
    },
    refetchInterval: ({ state }) => untilDue(state.data),
  });
}

/** Reads the schedules of the project, newest first, for those that have ended. */
export function useEndedSchedules() {
  const { api } = useKeySession();
  return useInfiniteQuery({
    queryKey: ["schedules", "ended"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const query = { limit: pageSize, ...(pageParam !== undefined && { cursor: pageParam }) };
      return unwrap(api.GET("/api/v1/schedules", { params: { query }, signal }));
    },
    getNextPageParam: ({ next_cursor: next }) => next ?? undefined,
    refetchInterval: ({ state }) =>
      untilDue(state.data?.pages.flatMap(({ schedules }) => schedules)),
  });
}

/** Marks the schedules of a flag, and the lists of all, as stale. */
export async function invalidateSchedules(client: QueryClient, flagKey: string): Promise<void> {
  await Promise.all([
    client.invalidateQueries({ queryKey: ["flag", flagKey, "schedule"] }),
    client.invalidateQueries({ queryKey: ["schedules"] }),
  ]);
}

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useKeySession } from "../session/session.tsx";
import { addDays, firstDayOf, lastDayOf } from "./months.ts";
import { paceDays } from "./projection.ts";

/** Interval at which figures are read again while the page is open. */
const refreshMs = 10_000;

/** Reads the plan, its limits and what is used of them. */
export function useUsage() {
  const { api } = useKeySession();
  return useQuery({
    queryKey: ["usage", "limits"],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/usage", { signal })),
    refetchInterval: refreshMs,
  });
}

/**
 * Reads the requests of each day of a month. For the current month they begin earlier, because the projection needs
 * the last days, and end with today.
 */
export function useUsageDays(month: string, isCurrent: boolean) {
  const { api } = useKeySession();
  const first = firstDayOf(month);
  const query = isCurrent
    ? { from: addDays(first, -paceDays) }
    : { from: first, to: lastDayOf(month) };
  return useQuery({
    queryKey: ["usage", "days", query],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/usage/days", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    ...(isCurrent && { refetchInterval: refreshMs }),
  });
}

type TrafficQuery = {
  hours: number;
  order: "most" | "least";
  environment_id?: string | undefined;
  limit: number;
};

/** Reads the flags of the project by the number of their evaluations. */
export function useFlagTraffic(query: TrafficQuery) {
  const { api } = useKeySession();
  return useQuery({
    queryKey: ["usage", "flags", query],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/usage/flags", { params: { query: query as never }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
  });
}

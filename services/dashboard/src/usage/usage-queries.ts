import { keepPreviousData } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import type { KeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { addDays, firstDayOf, lastDayOf } from "./months.ts";
import { paceDays } from "./projection.ts";

/** Interval at which figures are read again while the page is open. */
const refreshMs = 10_000;
const keepsData = { placeholderData: keepPreviousData };

/** Reads the plan, its limits and what is used of them. */
export function useUsage() {
  const read = ({ api }: KeySession, signal: AbortSignal) =>
    unwrap(api.GET("/api/v1/usage", { signal }));
  return useKeyQuery(["usage", "limits"], read, { refetchInterval: refreshMs });
}

/**
 * Reads the requests of each day of a month. For the current month they begin earlier, because the projection needs
 * the last days, and end with today.
 */
export function useUsageDays(month: string, isCurrent: boolean) {
  const first = firstDayOf(month);
  const query = isCurrent
    ? { from: addDays(first, -paceDays) }
    : { from: first, to: lastDayOf(month) };
  const read = ({ api }: KeySession, signal: AbortSignal) =>
    unwrap(api.GET("/api/v1/usage/days", { params: { query }, signal }));
  const refetchInterval = isCurrent && refreshMs;
  return useKeyQuery(["usage", "days", query], read, { ...keepsData, refetchInterval });
}

type TrafficQuery = {
  hours: number;
  order: "most" | "least";
  environment_id?: string;
  limit: number;
};

/** Reads the flags of the project by the number of their evaluations. */
export function useFlagTraffic(query: TrafficQuery) {
  const read = ({ api }: KeySession, signal: AbortSignal) =>
    unwrap(api.GET("/api/v1/usage/flags", { params: { query }, signal }));
  return useKeyQuery(["usage", "flags", query], read, { ...keepsData, refetchInterval: refreshMs });
}

import type { PlanLimits } from "../api/schema.d.ts";
import { count } from "../ui/numbers.ts";

export const limitText = (limit: number | null): string =>
  limit === null ? "Unlimited" : count(limit);

/** The limits of a plan, in display order. */
export const limitLabels: Readonly<Record<keyof PlanLimits, string>> = {
  requests_per_month: "SDK requests per month",
  sse_connections: "Open streams",
  projects: "Projects",
};
export const limitNames = Object.keys(limitLabels) as (keyof PlanLimits)[];

export function isSmaller(limit: number | null, before: number | null): boolean {
  return limit !== null && (before === null || limit < before);
}

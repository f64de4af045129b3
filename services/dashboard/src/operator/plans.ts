import type { PlanLimits } from "../api/schema.d.ts";
import { bytes, count } from "../ui/numbers.ts";

type LimitName = keyof PlanLimits;

/** The limits of a plan, in display order. */
export const limitLabels: Readonly<Record<LimitName, string>> = {
  requests_per_month: "SDK requests per month",
  sse_connections: "Open streams",
  projects: "Projects",
  configuration_bytes: "Rules of all flags",
};
export const limitNames = Object.keys(limitLabels) as LimitName[];

export function limitText(limits: PlanLimits, name: LimitName): string {
  const limit = limits[name];
  if (limit === null) return "Unlimited";
  return name === "configuration_bytes" ? bytes(limit) : count(limit);
}

export function isSmaller(limit: number | null, before: number | null): boolean {
  return limit !== null && (before === null || limit < before);
}

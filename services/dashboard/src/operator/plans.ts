import type { Organization, PlanLimits } from "../api/schema.d.ts";
import { count } from "../ui/numbers.ts";

/** The plans of an installation that configures none. `PLANS` can give them other limits and add plans. */
const shippedPlans: Readonly<Record<string, PlanLimits>> = {
  free: { requests_per_month: 500_000, sse_connections: 1, projects: 3 },
  starter: { requests_per_month: 1_000_000, sse_connections: 25, projects: 5 },
  pro: { requests_per_month: 3_000_000, sse_connections: 100, projects: 10 },
  growth: { requests_per_month: 12_000_000, sse_connections: 500, projects: null },
};

export type KnownPlan = {
  name: string;
  limits: PlanLimits;
  /** The API has reported these limits for an organization. Otherwise they are those of a new installation. */
  isReported: boolean;
};

/** Returns the shipped plans, and those of the organizations. The API has no list of plans. */
export function knownPlans(organizations: readonly Organization[]): readonly KnownPlan[] {
  const plans = new Map<string, KnownPlan>(
    Object.entries(shippedPlans).map(([name, limits]) => [
      name,
      { name, limits, isReported: false },
    ]),
  );
  for (const { plan, limits } of organizations)
    plans.set(plan, { name: plan, limits, isReported: true });
  return [...plans.values()];
}

export const limitText = (limit: number | null): string =>
  limit === null ? "Unlimited" : count(limit);

/** The limits of a plan, in display order. */
export const limitLabels = [
  { key: "requests_per_month", label: "SDK requests per month" },
  { key: "sse_connections", label: "Open streams" },
  { key: "projects", label: "Projects" },
] as const satisfies readonly { key: keyof PlanLimits; label: string }[];

/** Returns whether another limit is smaller. */
export function isSmaller(limit: number | null, before: number | null): boolean {
  return limit !== null && (before === null || limit < before);
}

import { z } from "zod";

/** Limits of a plan; null means unlimited. */
export const PlanLimits = z.strictObject({
  requests_per_month: z.int().min(0).nullable(),
  sse_connections: z.int().min(0).nullable(),
  projects: z.int().min(0).nullable(),
});
export type PlanLimits = z.infer<typeof PlanLimits>;

/** Last sentence of an error message about a limit of a plan. */
export const raisedByPlan =
  "The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.";

/** Plans of an installation that configures none. */
export const defaultPlans: Readonly<Record<string, Required<PlanLimits>>> = {
  free: { requests_per_month: 500_000, sse_connections: 1, projects: 3 },
  starter: { requests_per_month: 1_000_000, sse_connections: 25, projects: 5 },
  pro: { requests_per_month: 3_000_000, sse_connections: 100, projects: 10 },
  growth: { requests_per_month: 12_000_000, sse_connections: 500, projects: null },
};

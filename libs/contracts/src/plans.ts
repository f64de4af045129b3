import { z } from "zod";

const limit = z.int().min(0).nullable();

/** Limits of a plan, as the API represents them; null means unlimited. */
export const PlanLimits = z.strictObject({
  requests_per_month: limit,
  sse_connections: limit,
  projects: limit,
  configuration_bytes: limit.describe(
    "Size of the rules and values of all flags in all environments, in bytes of JSON without spaces between tokens. `null`: unlimited",
  ),
});
export type PlanLimits = z.infer<typeof PlanLimits>;

/** Limits of a plan as they are configured and stored. A plan of an earlier release lacks the newer ones. */
export const ConfiguredLimits = PlanLimits.partial({ configuration_bytes: true });
export type ConfiguredLimits = z.infer<typeof ConfiguredLimits>;

export function planLimitsOf(configured: ConfiguredLimits): PlanLimits {
  return { ...configured, configuration_bytes: configured.configuration_bytes ?? null };
}

/** Last sentence of an error message about a limit of a plan. */
export const raisedByPlan =
  "The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.";

const mebibyte = 1024 * 1024;

/** Plans of an installation that configures none. */
export const defaultPlans: Readonly<Record<string, PlanLimits>> = {
  free: {
    requests_per_month: 500_000,
    sse_connections: 1,
    projects: 3,
    configuration_bytes: 8 * mebibyte,
  },
  starter: {
    requests_per_month: 1_000_000,
    sse_connections: 25,
    projects: 5,
    configuration_bytes: 32 * mebibyte,
  },
  pro: {
    requests_per_month: 3_000_000,
    sse_connections: 100,
    projects: 10,
    configuration_bytes: 64 * mebibyte,
  },
  growth: {
    requests_per_month: 12_000_000,
    sse_connections: 500,
    projects: null,
    configuration_bytes: 256 * mebibyte,
  },
  unlimited: {
    requests_per_month: null,
    sse_connections: null,
    projects: null,
    configuration_bytes: null,
  },
};

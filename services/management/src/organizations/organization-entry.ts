import type { EntryOf, PlanLimits } from "@halyard/contracts";
import type { Organization } from "./organization.ts";

/** An organization as the other services know it: with the limits of its plan resolved. */
export function organizationEntry(
  organization: Omit<Organization, "createdAt"> & { projectCount: number },
  plans: Readonly<Record<string, PlanLimits>>,
): EntryOf<"organization"> {
  return {
    address: { kind: "organization", organizationId: organization.id },
    value: {
      kind: "organization",
      organization_id: organization.id,
      name: organization.name,
      plan: organization.plan,
      limits: limitsOf(organization, plans),
      project_count: organization.projectCount,
      version: organization.version,
      committed_at: organization.updatedAt.toISOString(),
    },
  };
}

/** Of a plan that was away already when limits were first recorded. */
const nothing: PlanLimits = { requests_per_month: 0, sse_connections: 0, projects: 0 };

/**
 * What an organization may use: what its plan says. When the plan is not configured any more, whoever
 * runs this has forgotten it or will decide what comes in its place; until then what held goes on.
 */
export function limitsOf(
  { plan, limits }: { plan: string; limits: PlanLimits | null },
  plans: Readonly<Record<string, PlanLimits>>,
): PlanLimits {
  const configured = Object.hasOwn(plans, plan) ? plans[plan] : undefined;
  return configured ?? limits ?? nothing;
}

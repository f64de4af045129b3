import type { PlanLimits } from "@halyard/contracts";
import type { AddressedEntry } from "../outbox/addressed-entry.ts";

/**
 * An organization as the other services know it: with the limits of its plan resolved. A plan that
 * is no longer configured allows nothing new; what exists stays.
 */
export function organizationEntry(
  organization: {
    id: string;
    name: string;
    plan: string;
    version: number;
    updatedAt: Date;
    projectCount: number;
  },
  plans: Readonly<Record<string, PlanLimits>>,
): AddressedEntry {
  return {
    address: { kind: "organization", organizationId: organization.id },
    value: {
      kind: "organization",
      organization_id: organization.id,
      name: organization.name,
      plan: organization.plan,
      limits: limitsOf(organization.plan, plans),
      project_count: organization.projectCount,
      version: organization.version,
      committed_at: organization.updatedAt.toISOString(),
    },
  };
}

const nothing: PlanLimits = { requests_per_month: 0, sse_connections: 0, projects: 0 };

export function limitsOf(plan: string, plans: Readonly<Record<string, PlanLimits>>): PlanLimits {
  return Object.hasOwn(plans, plan) ? (plans[plan] ?? nothing) : nothing;
}

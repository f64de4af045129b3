import type { Organization as OrganizationResource, PlanLimits } from "@halyard/contracts";
import type { Organization } from "./organization.ts";
import { limitsOf } from "./organization-entry.ts";

/** An organization as the API shows it: with the limits of its plan. */
export function organizationResource(
  organization: Organization,
  plans: Readonly<Record<string, PlanLimits>>,
): OrganizationResource {
  return {
    id: organization.id,
    name: organization.name,
    plan: organization.plan,
    limits: limitsOf(organization, plans),
    created_at: organization.createdAt.toISOString(),
    updated_at: organization.updatedAt.toISOString(),
  };
}

import {
  type ConfiguredLimits,
  type EntryOf,
  type Organization as OrganizationResource,
  planLimitsOf,
} from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";
import type { Plans } from "./plans.ts";

/** A customer, with its plan. */
export type Organization = {
  id: string;
  name: string;
  plan: string;
  limits: ConfiguredLimits;
  /** Size of the rules of all flags in all environments (`flags/configuration-limit.ts`). */
  configurationBytes: number;
  /** Counter that every change to the organization, or to the number of its projects, increments. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

export type LockedOrganization = { organization: Organization; projectCount: number };

export const noSuchOrganization = createProblem("NOT_FOUND_001", "There is no such organization.");

/** Returns an organization as the API represents it. */
export function organizationResource(organization: Organization): OrganizationResource {
  const limits = planLimitsOf(organization.limits);
  return {
    id: organization.id,
    name: organization.name,
    plan: organization.plan,
    limits,
    configuration_bytes: {
      used: organization.configurationBytes,
      limit: limits.configuration_bytes,
    },
    created_at: organization.createdAt.toISOString(),
    updated_at: organization.updatedAt.toISOString(),
  };
}

/** Returns the snapshot entry of an organization. Readers resolve its limits from the entry of the plans. */
export function organizationEntry(
  organization: Omit<Organization, "createdAt" | "limits" | "configurationBytes"> & {
    projectCount: number;
  },
): EntryOf<"organization"> {
  return {
    address: { kind: "organization", organizationId: organization.id },
    value: {
      kind: "organization",
      organization_id: organization.id,
      name: organization.name,
      plan: organization.plan,
      project_count: organization.projectCount,
      version: organization.version,
      committed_at: organization.updatedAt.toISOString(),
    },
  };
}

/** The result of a change to an organization. */
type OrganizationDecision = {
  organization: Organization;
  messages: readonly OutboxMessage[];
};

export function decideCreateOrganization(
  request: { name: string; plan: string },
  { plans, now, newId }: { plans: Plans; now: Date; newId: () => string },
): OrganizationDecision | Problem {
  const limits = limitsOf(request.plan, plans);
  if (isProblem(limits)) return limits;
  const { name, plan } = request;
  const dates = { createdAt: now, updatedAt: now };
  const initial = { version: 1, configurationBytes: 0, ...dates };
  return decided({ id: newId(), name, plan, limits, ...initial }, 0);
}

/**
 * Decides a change to an organization. Returns "unchanged" if no requested value differs from the current one; then
 * there is no new version and no entry.
 */
export function decideUpdateOrganization(
  { organization, projectCount }: LockedOrganization,
  request: { name?: string | undefined; plan?: string | undefined },
  { plans, now }: { plans: Plans; now: Date },
): OrganizationDecision | Problem | "unchanged" {
  const { name = organization.name, plan = organization.plan } = request;
  const limits = limitsOf(plan, plans);
  if (isProblem(limits)) return limits;
  if (name === organization.name && plan === organization.plan) return "unchanged";
  return nextVersion({ ...organization, name, plan, limits }, projectCount, now);
}

/**
 * Returns the next version of an organization. `updatedAt` never decreases, even if the clock of this replica is
 * behind.
 */
export function nextVersion(
  organization: Organization,
  projectCount: number,
  now: Date,
): OrganizationDecision {
  const version = organization.version + 1;
  const updatedAt = new Date(Math.max(now.getTime(), organization.updatedAt.getTime()));
  return decided({ ...organization, version, updatedAt }, projectCount);
}

function decided(organization: Organization, projectCount: number): OrganizationDecision {
  const entry = organizationEntry({ ...organization, projectCount });
  return { organization, messages: [entryToPublish(entry)] };
}

function limitsOf(plan: string, plans: Plans): ConfiguredLimits | Problem {
  const limits = Object.hasOwn(plans, plan) ? plans[plan] : undefined;
  if (limits !== undefined) return limits;
  const names = Object.keys(plans).map((name) => JSON.stringify(name));
  return createProblem("VALIDATION_001", `/plan must be one of ${names.join(", ")}`);
}

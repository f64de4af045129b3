import type { EntryOf, Organization as OrganizationResource, PlanLimits } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/service";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";

/** The limits of each configured plan. */
export type Plans = Readonly<Record<string, PlanLimits>>;

/** A customer, with its plan. */
export type Organization = {
  id: string;
  name: string;
  plan: string;
  /** The limits in the newest snapshot entry of the organization, or null if they were never recorded. */
  limits: PlanLimits | null;
  /** Counter that every change to the organization, or to the number of its projects, increments. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** A locked organization, with the number of its projects. */
export type LockedOrganization = { organization: Organization; projectCount: number };

export const noSuchOrganization = createProblem("NOT_FOUND_001", "There is no such organization.");

/** Returns an organization as the API represents it, with the limits of its plan. */
export function organizationResource(
  organization: Organization,
  plans: Plans,
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

/** Returns the snapshot entry of an organization, with the limits of its plan. */
export function organizationEntry(
  organization: Omit<Organization, "createdAt"> & { projectCount: number },
  plans: Plans,
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

/** Limits of an organization whose plan was already missing from the configuration when limits were first recorded. */
const zeroLimits: Record<keyof PlanLimits, number> = {
  requests_per_month: 0,
  sse_connections: 0,
  projects: 0,
};

/**
 * Returns the limits of an organization: those of its plan. If the plan is no longer configured, by mistake or before a
 * replacement, the last recorded limits stay in effect.
 */
export function limitsOf(
  { plan, limits }: { plan: string; limits: PlanLimits | null },
  plans: Plans,
): PlanLimits {
  const configured = Object.hasOwn(plans, plan) ? plans[plan] : undefined;
  return configured ?? limits ?? zeroLimits;
}

/** The result of a change to an organization. */
export type OrganizationDecision = {
  organization: Organization;
  messages: readonly OutboxMessage[];
};

export function decideCreateOrganization(
  request: { name: string; plan: string },
  circumstances: { plans: Plans; now: Date; newId: () => string },
): OrganizationDecision | Problem {
  const { plans, now } = circumstances;
  const organization: Organization = {
    id: circumstances.newId(),
    name: request.name,
    plan: request.plan,
    limits: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  return checkPlan(request.plan, plans) ?? withLimits(organization, 0, plans);
}

/**
 * Decides a change to an organization. Returns "unchanged" if no requested value differs from the current one; then
 * there is no new version and no entry.
 */
export function decideUpdateOrganization(
  current: LockedOrganization,
  request: { name?: string | undefined; plan?: string | undefined },
  circumstances: { plans: Plans; now: Date },
): OrganizationDecision | Problem | "unchanged" {
  const { organization, projectCount } = current;
  const { plans } = circumstances;
  const { name = organization.name, plan = organization.plan } = request;
  // A request may repeat the current plan even if that plan is no longer configured.
  const problem = plan === organization.plan ? undefined : checkPlan(plan, plans);
  if (problem !== undefined) return problem;
  if (name === organization.name && plan === organization.plan) return "unchanged";
  return nextVersion({ ...organization, name, plan }, projectCount, circumstances);
}

/**
 * Returns the next version of an organization. `updatedAt` never decreases, even if the clock of this replica is
 * behind. Every version records the limits of the plan.
 */
export function nextVersion(
  organization: Organization,
  projectCount: number,
  { plans, now }: { plans: Plans; now: Date },
): OrganizationDecision {
  const version = organization.version + 1;
  const updatedAt = new Date(Math.max(now.getTime(), organization.updatedAt.getTime()));
  return withLimits({ ...organization, version, updatedAt }, projectCount, plans);
}

function withLimits(
  changed: Organization,
  projectCount: number,
  plans: Plans,
): OrganizationDecision {
  const organization = { ...changed, limits: limitsOf(changed, plans) };
  const entry = organizationEntry({ ...organization, projectCount }, plans);
  return { organization, messages: [entryToPublish(entry)] };
}

function checkPlan(plan: string, plans: Plans): Problem | undefined {
  if (Object.hasOwn(plans, plan)) return undefined;
  const names = Object.keys(plans).map((name) => JSON.stringify(name));
  return createProblem("VALIDATION_001", `/plan must be one of ${names.join(", ")}`);
}

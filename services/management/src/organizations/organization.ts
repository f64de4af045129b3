import type { EntryOf, Organization as OrganizationResource, PlanLimits } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/service";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";

/** The limits of each plan that is configured. */
export type Plans = Readonly<Record<string, PlanLimits>>;

/** A customer: its plan, and with it what it may use. */
export type Organization = {
  id: string;
  name: string;
  plan: string;
  /** What its entry said last of what it may use; null when that was never recorded. */
  limits: PlanLimits | null;
  /** Raised by every change to the organization or to the number of its projects. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** An organization whose row is locked, with the number of its projects at that time. */
export type LockedOrganization = { organization: Organization; projectCount: number };

export const noSuchOrganization = createProblem("NOT_FOUND_001", "There is no such organization.");

/** An organization as the API shows it: with the limits of its plan. */
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

/** An organization as the other services know it: with the limits of its plan resolved. */
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

/** Limits of a plan that was not configured any more when limits were first recorded. */
const nothing: Record<keyof PlanLimits, number> = {
  requests_per_month: 0,
  sse_connections: 0,
  projects: 0,
};

/**
 * What an organization may use: what its plan says. When the plan is not configured any more, whoever
 * runs this has forgotten it or will decide what comes in its place; until then what held goes on.
 */
export function limitsOf(
  { plan, limits }: { plan: string; limits: PlanLimits | null },
  plans: Plans,
): PlanLimits {
  const configured = Object.hasOwn(plans, plan) ? plans[plan] : undefined;
  return configured ?? limits ?? nothing;
}

/** What follows from a change of an organization. */
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

/** What is given but not different is no change: then there is no new version and no entry. */
export function decideUpdateOrganization(
  current: LockedOrganization,
  request: { name?: string | undefined; plan?: string | undefined },
  circumstances: { plans: Plans; now: Date },
): OrganizationDecision | Problem | "unchanged" {
  const { organization, projectCount } = current;
  const { plans } = circumstances;
  const { name = organization.name, plan = organization.plan } = request;
  // Its own plan may be told again, also when that is not configured any more: nothing changes.
  const problem = plan === organization.plan ? undefined : checkPlan(plan, plans);
  if (problem !== undefined) return problem;
  if (name === organization.name && plan === organization.plan) return "unchanged";
  return nextVersion({ ...organization, name, plan }, projectCount, circumstances);
}

/**
 * The next version of an organization. Its time only moves forward, on whatever replica's clock, and
 * every version records what the plan allows.
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

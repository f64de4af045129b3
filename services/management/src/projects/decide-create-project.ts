import { type PlanLimits, raisedByPlan } from "@halyard/contracts";
import { type Refusal, refuse } from "@halyard/service";
import type { AuditEntry } from "../audit/audit-entry.ts";
import { environmentCreated, newEnvironment } from "../environments/decide-create-environment.ts";
import type { Environment } from "../environments/environment.ts";
import { environmentEntry } from "../environments/environment-entry.ts";
import type { Occasion } from "../flags/occasion.ts";
import { nextVersion } from "../organizations/decide-organization.ts";
import type { Organization } from "../organizations/organization.ts";
import { limitsOf } from "../organizations/organization-entry.ts";
import { entryOf, type OutboxMessage } from "../outbox/outbox-message.ts";
import type { Project } from "./project.ts";
import { projectAudit } from "./project-audit.ts";
import { projectEntry } from "./project-entry.ts";

/** What follows from a new project, decided before anything is written. */
export type ProjectDecision = {
  project: Project;
  environments: readonly Environment[];
  organization: Organization;
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

const usualEnvironments = ["development", "staging", "production"];

/** A new project with its environments, if the plan of its organization allows one more. */
export function decideCreateProject(
  current: { organization: Organization; projectCount: number },
  request: { name: string; environments?: readonly string[] | undefined },
  circumstances: { plans: Readonly<Record<string, PlanLimits>>; occasion: Occasion },
): ProjectDecision | Refusal {
  const { plans, occasion } = circumstances;
  const names = request.environments ?? usualEnvironments;
  const refusal = checkNames(names) ?? checkLimit(current, plans);
  if (refusal !== undefined) return refusal;

  const organizationId = current.organization.id;
  const project: Project = {
    id: occasion.newId(),
    organizationId,
    name: request.name,
    version: 1,
    createdAt: occasion.now,
    updatedAt: occasion.now,
  };
  const environments = names.map((name) => newEnvironment(project.id, name, occasion));
  const changed = nextVersion(current.organization, current.projectCount + 1, {
    plans,
    now: occasion.now,
  });
  return {
    project,
    environments,
    organization: changed.organization,
    audit: [
      projectAudit(
        "project_created",
        project,
        { before: null, after: { name: project.name } },
        occasion,
      ),
      ...environments.map((environment) => environmentCreated(environment, occasion)),
    ],
    messages: [
      ...changed.messages,
      entryOf(projectEntry(project)),
      ...environments.map((each) => entryOf(environmentEntry({ ...each, organizationId }))),
    ],
  };
}

function checkNames(names: readonly string[]): Refusal | undefined {
  const repeated = names.findIndex((name, index) => names.indexOf(name) < index);
  if (repeated === -1) return undefined;
  return refuse("VALIDATION_001", `/environments/${repeated} must not repeat an earlier name`);
}

/** Time does not help against this limit, so the answer says no time to try again. */
function checkLimit(
  current: { organization: Organization; projectCount: number },
  plans: Readonly<Record<string, PlanLimits>>,
): Refusal | undefined {
  const { plan } = current.organization;
  const { projects: limit } = limitsOf(current.organization, plans);
  if (limit === null || current.projectCount < limit) return undefined;
  return refuse(
    "RATE_001",
    `The organization's plan ${JSON.stringify(plan)} allows ${limit} ${limit === 1 ? "project" : "projects"}, and the organization has ${current.projectCount}. ${raisedByPlan}`,
    { "ratelimit-policy": `"projects";q=${limit}`, ratelimit: '"projects";r=0' },
  );
}

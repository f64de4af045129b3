import { type EntryOf, raisedByPlan } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";
import {
  type Environment,
  environmentCreated,
  environmentEntry,
  newEnvironment,
} from "./environment.ts";
import { type LockedOrganization, nextVersion, type Organization } from "./organization.ts";

/** A project of an organization. It owns flags and environments. */
export type Project = {
  id: string;
  organizationId: string;
  name: string;
  /** Counter that every change increments. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** Returns the snapshot entry of a project, which the other services read. */
export function projectEntry(project: Omit<Project, "createdAt">): EntryOf<"project"> {
  return {
    address: { kind: "project", organizationId: project.organizationId, projectId: project.id },
    value: {
      kind: "project",
      organization_id: project.organizationId,
      project_id: project.id,
      name: project.name,
      version: project.version,
      committed_at: project.updatedAt.toISOString(),
    },
  };
}

/** Returns the audit entry of a change to a project. */
export function projectAudit(
  action: "project_created" | "project_renamed" | "project_deleted",
  { id: projectId }: { id: string },
  names: Pick<AuditEntry, "before" | "after">,
  context: ChangeContext,
): AuditEntry {
  return auditEntry(context, { projectId, environmentId: null, action, ...names });
}

/** The result of creating a project, decided before anything is written. */
export type ProjectDecision = {
  project: Project;
  environments: readonly Environment[];
  organization: Organization;
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

const defaultEnvironments = ["development", "staging", "production"];

/** Decides the creation of a project with its environments, if the plan of the organization allows one more. */
export function decideCreateProject(
  current: LockedOrganization,
  request: { name: string; environments?: readonly string[] | undefined },
  context: ChangeContext,
): ProjectDecision | Problem {
  const names = request.environments ?? defaultEnvironments;
  const problem = checkNames(names) ?? checkLimit(current);
  if (problem !== undefined) return problem;

  const organizationId = current.organization.id;
  const project: Project = {
    id: context.newId(),
    organizationId,
    name: request.name,
    version: 1,
    createdAt: context.now,
    updatedAt: context.now,
  };
  const environments = names.map((name) =>
    newEnvironment(project.id, { name, caution: name === "production" }, context),
  );
  const changed = nextVersion(current.organization, current.projectCount + 1, context.now);
  return {
    project,
    environments,
    organization: changed.organization,
    audit: [
      projectAudit(
        "project_created",
        project,
        { before: null, after: { name: project.name } },
        context,
      ),
      ...environments.map((environment) => environmentCreated(environment, context)),
    ],
    messages: [
      ...changed.messages,
      entryToPublish(projectEntry(project)),
      ...environments.map((each) => entryToPublish(environmentEntry({ ...each, organizationId }))),
    ],
  };
}

function checkNames(names: readonly string[]): Problem | undefined {
  const repeated = names.findIndex((name, index) => names.indexOf(name) < index);
  if (repeated === -1) return undefined;
  return createProblem(
    "VALIDATION_001",
    `/environments/${repeated} must not repeat an earlier name`,
  );
}

/** Checks the number of projects against the plan. The problem has no `Retry-After`, because waiting does not help. */
function checkLimit({ organization, projectCount }: LockedOrganization): Problem | undefined {
  const { plan } = organization;
  const { projects: limit } = organization.limits;
  if (limit === null || projectCount < limit) return undefined;
  return createProblem(
    "RATE_001",
    `The organization's plan ${JSON.stringify(plan)} allows ${limit} ${limit === 1 ? "project" : "projects"}, and the organization has ${projectCount}. ${raisedByPlan}`,
    { "ratelimit-policy": `"projects";q=${limit}`, ratelimit: '"projects";r=0' },
  );
}

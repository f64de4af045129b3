import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Transaction } from "@halyard/postgres";
import { noSuchProject } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { entryToPublish } from "../outbox/outbox-message.ts";
import { markDeleted } from "./deletion-store.ts";
import { insertEnvironments, listEnvironments } from "./environment-store.ts";
import { type LockedOrganization, nextVersion, noSuchOrganization } from "./organization.ts";
import { lockOrganization, updateOrganization } from "./organization-store.ts";
import {
  decideCreateProject,
  type Project,
  type ProjectDecision,
  projectAudit,
  projectEntry,
} from "./project.ts";
import { insertProject, lockProject, updateProjectName } from "./project-store.ts";
import { bypassed, checkDeletion } from "./protect-environment.ts";

/** The use cases of projects. Each runs in the transaction of a write. */
type Address = { organizationId: string; projectId: string };

export async function createProject(
  change: Change,
  { organizationId }: { organizationId: string },
  request: { name: string; environments?: readonly string[] | undefined },
): Promise<ProjectDecision | Problem> {
  const { tx } = change;
  // The lock serializes the creation of projects, so that concurrent requests cannot exceed the limit.
  const current = await lockOrganization(tx, organizationId);
  if (current === undefined) return noSuchOrganization;
  const context = await change.context();
  const decision = decideCreateProject(current, request, context);
  if (isProblem(decision)) return decision;
  if (!(await insertProject(tx, decision.project))) return nameTaken(request.name);
  await Promise.all([
    insertEnvironments(tx, decision.environments),
    updateOrganization(tx, decision.organization),
  ]);
  recordAudit(change, decision.audit);
  change.publish(decision.messages);
  return decision;
}

export async function renameProject(
  change: Change,
  address: Address,
  { name }: { name?: string | undefined },
): Promise<Project | Problem> {
  const { tx } = change;
  const found = await lockWithOrganization(tx, address);
  if (isProblem(found)) return found;
  const { project } = found;
  if (name === undefined || name === project.name) return project;
  const context = await change.context();
  const version = project.version + 1;
  const renamed = { ...project, name, version, updatedAt: context.now };
  if (!(await updateProjectName(tx, renamed))) return nameTaken(name);
  const names = { before: { name: project.name }, after: { name } };
  recordAudit(change, [projectAudit("project_renamed", project, names, context)]);
  change.publish([entryToPublish(projectEntry(renamed))]);
  return renamed;
}

export async function removeProject(
  change: Change,
  address: Address,
  bypassReason: string | undefined,
): Promise<Project | Problem> {
  const { tx } = change;
  const found = await lockWithOrganization(tx, address);
  if (isProblem(found)) return found;
  const { project, organization, projectCount } = found;
  const environments = await listEnvironments(tx, project.id);
  const refused = checkDeletion(change, environments, bypassReason);
  if (refused !== undefined) return refused;
  const context = await change.context();
  const names = { before: { name: project.name }, after: bypassed(bypassReason) };
  const changed = nextVersion(organization, projectCount - 1, context.now);
  recordAudit(change, [projectAudit("project_deleted", project, names, context)]);
  await updateOrganization(tx, changed.organization);
  const tombstones = await markDeleted(tx, project.id, context.now);
  change.publish([...tombstones, ...changed.messages]);
  return project;
}

/** Locks the organization of a project, then the project. */
async function lockWithOrganization(
  tx: Transaction,
  { organizationId, projectId }: Address,
): Promise<(LockedOrganization & { project: Project }) | Problem> {
  const current = await lockOrganization(tx, organizationId);
  if (current === undefined) return noSuchProject;
  const project = await lockProject(tx, projectId);
  if (project?.organizationId !== organizationId.toLowerCase()) return noSuchProject;
  return { ...current, project };
}

function nameTaken(name: string): Problem {
  return createProblem(
    "CONFLICT_001",
    `The organization already has a project with the name ${name}.`,
  );
}

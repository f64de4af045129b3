import type { PlanLimits } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { attributionOf, type ChangeContext } from "../access/change-context.ts";
import { noSuchProject, type Principal } from "../access/principal.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { markDeleted } from "../deletion/deletion-store.ts";
import { insertEnvironments } from "../environments/environment-store.ts";
import { nextVersion } from "../organizations/organization.ts";
import { noSuchOrganization } from "../organizations/organization-changes.ts";
import { lockOrganization, updateOrganization } from "../organizations/organization-store.ts";
import { entryOf } from "../outbox/outbox-message.ts";
import type { Write } from "../outbox/write.ts";
import {
  decideCreateProject,
  type Project,
  type ProjectDecision,
  projectAudit,
  projectEntry,
} from "./project.ts";
import { insertProject, lockProject, renameProject } from "./project-store.ts";

type ProjectAddress = { organizationId: string; projectId: string };

/** The use cases of projects. Each runs inside a write's transaction. */
export type ProjectChanges = {
  create(
    write: Write,
    principal: Principal,
    organizationId: string,
    request: { name: string; environments?: readonly string[] | undefined },
  ): Promise<Pick<ProjectDecision, "project" | "environments"> | Refusal>;
  rename(
    write: Write,
    principal: Principal,
    address: ProjectAddress,
    request: { name?: string | undefined },
  ): Promise<Project | Refusal>;
  remove(write: Write, principal: Principal, address: ProjectAddress): Promise<Project | Refusal>;
};

export function createProjectChanges(options: {
  plans: Readonly<Record<string, PlanLimits>>;
  now: () => Date;
  newId: () => string;
}): ProjectChanges {
  const { plans, now, newId } = options;

  async function contextOf(tx: Transaction, principal: Principal): Promise<ChangeContext> {
    return { ...(await attributionOf(tx, principal)), cause: "manual", now: now(), newId };
  }

  return {
    async create({ tx, publish }, principal, organizationId, request) {
      // The organization's lock lets one project through at a time, so that the limit is exact.
      const current = await lockOrganization(tx, organizationId);
      if (current === undefined) return noSuchOrganization();
      const context = await contextOf(tx, principal);
      const decision = decideCreateProject(current, request, { plans, context });
      if (isRefusal(decision)) return decision;
      if (!(await insertProject(tx, decision.project))) return nameTaken(request.name);
      await Promise.all([
        insertEnvironments(tx, decision.environments),
        insertAuditEntries(tx, decision.audit),
        updateOrganization(tx, decision.organization),
      ]);
      publish(decision.messages);
      return decision;
    },

    async rename({ tx, publish }, principal, { organizationId, projectId }, { name }) {
      if ((await lockOrganization(tx, organizationId)) === undefined) return noSuchProject();
      const project = await lockProject(tx, projectId);
      if (project?.organizationId !== organizationId.toLowerCase()) return noSuchProject();
      if (name === undefined || name === project.name) return project;
      const context = await contextOf(tx, principal);
      const version = project.version + 1;
      const renamed = { ...project, name, version, updatedAt: context.now };
      if (!(await renameProject(tx, renamed))) return nameTaken(name);
      const names = { before: { name: project.name }, after: { name } };
      await insertAuditEntries(tx, [projectAudit("project_renamed", project, names, context)]);
      publish([entryOf(projectEntry(renamed))]);
      return renamed;
    },

    async remove({ tx, publish }, principal, { organizationId, projectId }) {
      const current = await lockOrganization(tx, organizationId);
      if (current === undefined) return noSuchProject();
      const project = await lockProject(tx, projectId);
      if (project?.organizationId !== organizationId.toLowerCase()) return noSuchProject();
      const context = await contextOf(tx, principal);
      const names = { before: { name: project.name }, after: null };
      const changed = nextVersion(current.organization, current.projectCount - 1, {
        plans,
        now: context.now,
      });
      await insertAuditEntries(tx, [projectAudit("project_deleted", project, names, context)]);
      await updateOrganization(tx, changed.organization);
      const tombstones = await markDeleted(tx, project.id, context.now);
      publish([...tombstones, ...changed.messages]);
      return project;
    },
  };
}

function nameTaken(name: string): Refusal {
  return refuse("CONFLICT_001", `The organization already has a project with the name ${name}.`);
}

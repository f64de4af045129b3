import * as contract from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { noSuchProject, type Principal } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { checkConfirmed } from "./check-confirmed.ts";
import { type Environment, environmentResource } from "./environment.ts";
import { listEnvironments, listEnvironmentsOf } from "./environment-store.ts";
import { noSuchOrganization } from "./organization.ts";
import { findOrganization } from "./organization-store.ts";
import type { Project } from "./project.ts";
import { createProject, removeProject, renameProject } from "./project-changes.ts";
import { findProjectOf, listProjects } from "./project-store.ts";

/** Registers the routes of projects, for the operator and signed-in people. */
export function registerProjectRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  routes.write(contract.createProject, {
    run: (change, { params, body }) => createProject(change, params, body),
    answer: ({ project, environments }) =>
      answer.created(
        `/api/v1/organizations/${project.organizationId}/projects/${project.id}`,
        projectResource(project, environments),
      ),
  });

  routes.read(contract.listProjects, async ({ params }, principal) => {
    const organization = await findOrganization(sql, params.organizationId);
    if (organization === undefined) return noSuchOrganization;
    // Projects are read first: every project that is found has its environments from its creation on.
    const projects = await listProjects(sql, organization.id);
    const environments = await listEnvironmentsOf(sql, organization.id);
    const byProject = Map.groupBy(environments, (environment) => environment.projectId);
    const visible = projects.filter(({ id }) => mayViewProject(principal, id));
    return answer.ok({
      projects: visible.map((each) => projectResource(each, byProject.get(each.id) ?? [])),
    });
  });

  routes.read(contract.getProject, async ({ params }) => {
    const project = await findProjectOf(sql, params);
    if (project === undefined) return noSuchProject;
    return answer.ok(projectResource(project, await listEnvironments(sql, project.id)));
  });

  routes.write(contract.updateProject, {
    run: (change, { params, body }) => renameProject(change, params, body),
    answer: async (renamed, { tx }) =>
      answer.ok(projectResource(renamed, await listEnvironments(tx, renamed.id))),
  });

  routes.write(contract.deleteProject, {
    check: ({ params, query }) => checkConfirmed(query.confirm, params.projectId),
    run: (change, { params, query }) => removeProject(change, params, query.bypass_reason),
    answer: answer.noContent,
  });
}

function mayViewProject(principal: Principal, projectId: string): boolean {
  return principal.kind === "operator" || principal.key.rights.at({ projectId }) !== undefined;
}

function projectResource(project: Project, environments: readonly Environment[]): contract.Project {
  return {
    id: project.id,
    organization_id: project.organizationId,
    name: project.name,
    environments: environments.map(environmentResource),
    created_at: project.createdAt.toISOString(),
  };
}

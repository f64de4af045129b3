import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import {
  type Answer,
  type App,
  answer,
  isRefusal,
  type Refusal,
  registerRoute,
} from "@halyard/service";
import { type Authenticate, noSuchProject } from "../access/principal.ts";
import { checkConfirmed } from "../deletion/check-confirmed.ts";
import { type Environment, environmentResource } from "../environments/environment.ts";
import { listEnvironments, listEnvironmentsOf } from "../environments/environment-store.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import { noSuchOrganization } from "../organizations/organization-changes.ts";
import { findOrganization } from "../organizations/organization-store.ts";
import type { Writer } from "../outbox/write.ts";
import type { Project } from "./project.ts";
import { createProjectChanges } from "./project-changes.ts";
import { findProjectOf, listProjects } from "./project-store.ts";

/** The routes of an organization's projects, which belong to the platform's operator. */
export function registerProjectRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    answerOnce: AnswerOnce;
    authenticate: Authenticate;
    plans: Readonly<Record<string, contract.PlanLimits>>;
    now: () => Date;
    newId: () => string;
  },
): void {
  const { sql, writer, answerOnce, authenticate } = options;
  const changes = createProjectChanges(options);

  registerRoute(app, contract.createProject, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.createProject, input, principal, async () => {
          const { organizationId } = input.params;
          const created = await changes.create(write, principal, organizationId, input.body);
          if (isRefusal(created)) return created;
          const { project, environments } = created;
          return answer.created(
            `/api/v1/organizations/${project.organizationId}/projects/${project.id}`,
            projectResource(project, environments),
          );
        }),
      ),
  });

  registerRoute(app, contract.listProjects, {
    authenticate,
    handle: async ({ params }) => {
      const organization = await findOrganization(sql, params.organizationId);
      if (organization === undefined) return noSuchOrganization();
      // In this order: a project that is found has its environments from its first moment on.
      const projects = await listProjects(sql, organization.id);
      const environments = await listEnvironmentsOf(sql, organization.id);
      const byProject = Map.groupBy(environments, (environment) => environment.projectId);
      return answer.ok({
        projects: projects.map((each) => projectResource(each, byProject.get(each.id) ?? [])),
      });
    },
  });

  registerRoute(app, contract.getProject, {
    authenticate,
    handle: async ({ params }) => {
      const project = await findProjectOf(sql, params);
      if (project === undefined) return noSuchProject();
      return answer.ok(projectResource(project, await listEnvironments(sql, project.id)));
    },
  });

  registerRoute(app, contract.updateProject, {
    authenticate,
    handle: ({ params, body }, principal) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const renamed = await changes.rename(write, principal, params, body);
        if (isRefusal(renamed)) return renamed;
        return answer.ok(projectResource(renamed, await listEnvironments(write.tx, renamed.id)));
      }),
  });

  registerRoute(app, contract.deleteProject, {
    authenticate,
    handle: ({ params, query }, principal) =>
      checkConfirmed(query.confirm, params.projectId) ??
      writer(async (write): Promise<Answer | Refusal> => {
        const removed = await changes.remove(write, principal, params);
        return isRefusal(removed) ? removed : answer.noContent();
      }),
  });
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

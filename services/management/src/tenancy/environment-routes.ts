import * as contract from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { noSuchProject, reachesProject } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { checkConfirmed } from "./check-confirmed.ts";
import { environmentResource, noSuchEnvironment } from "./environment.ts";
import { changeEnvironment, createEnvironment, removeEnvironment } from "./environment-changes.ts";
import { findEnvironment, findParentProject, listEnvironments } from "./environment-store.ts";

/**
 * Registers the routes of environments, for the operator and for server keys of the project. A key with
 * `environment_only` can only read them. Only the operator can rename and delete them.
 */
export function registerEnvironmentRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  routes.write(contract.createEnvironment, {
    run: (change, { params, body }) => createEnvironment(change, params, body),
    answer: (created) =>
      answer.created(
        `/api/v1/projects/${created.projectId}/environments/${created.id}`,
        environmentResource(created),
      ),
  });

  routes.read(contract.listEnvironments, async ({ params }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchProject;
    const project = await findParentProject(sql, params.projectId);
    if (project === undefined) return noSuchProject;
    const environments = await listEnvironments(sql, project.id);
    return answer.ok({ environments: environments.map(environmentResource) });
  });

  routes.read(contract.getEnvironment, async ({ params }, principal) => {
    if (!reachesProject(principal, params.projectId)) return noSuchEnvironment;
    const environment = await findEnvironment(sql, params);
    if (environment === undefined) return noSuchEnvironment;
    return answer.ok(environmentResource(environment));
  });

  routes.write(contract.updateEnvironment, {
    run: (change, { params, body }) => changeEnvironment(change, params, body),
    answer: (changed) => answer.ok(environmentResource(changed)),
  });

  routes.write(contract.deleteEnvironment, {
    check: ({ params, query }) => checkConfirmed(query.confirm, params.environmentId),
    run: (change, { params, query }) => removeEnvironment(change, params, query.bypass_reason),
    answer: answer.noContent,
  });
}

import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { type App, answer, isRefusal, registerRoute } from "@halyard/service";
import type { Authenticate } from "../access/principal.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { noSuchProject, reachesProject } from "../projects/project-access.ts";
import { findProject } from "../projects/project-store.ts";
import { noSuchEnvironment } from "./environment-access.ts";
import { createEnvironmentChanges } from "./environment-changes.ts";
import { environmentResource } from "./environment-resource.ts";
import { findEnvironment, listEnvironments } from "./environment-store.ts";

/**
 * The routes of a project's environments: for the operator, and for the project's own server keys. A
 * key made with `environment_only` reads them, but adds none.
 */
export function registerEnvironmentRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    answerOnce: AnswerOnce;
    authenticate: Authenticate;
    now: () => Date;
    newId: () => string;
  },
): void {
  const { sql, writer, answerOnce, authenticate } = options;
  const changes = createEnvironmentChanges(options);

  registerRoute(app, contract.createEnvironment, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.createEnvironment, input, principal, async () => {
          const { projectId } = input.params;
          const created = await changes.create(write, principal, projectId, input.body);
          if (isRefusal(created)) return created;
          return answer.created(
            `/api/v1/projects/${created.projectId}/environments/${created.id}`,
            environmentResource(created),
          );
        }),
      ),
  });

  registerRoute(app, contract.listEnvironments, {
    authenticate,
    handle: async ({ params }, principal) => {
      if (!reachesProject(principal, params.projectId)) return noSuchProject();
      const project = await findProject(sql, params.projectId);
      if (project === undefined) return noSuchProject();
      const environments = await listEnvironments(sql, project.id);
      return answer.ok({ environments: environments.map(environmentResource) });
    },
  });

  registerRoute(app, contract.getEnvironment, {
    authenticate,
    handle: async ({ params }, principal) => {
      if (!reachesProject(principal, params.projectId)) return noSuchEnvironment();
      const environment = await findEnvironment(sql, params);
      if (environment === undefined) return noSuchEnvironment();
      return answer.ok(environmentResource(environment));
    },
  });
}

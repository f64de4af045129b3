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
import { type Authenticate, noSuchProject, reachesProject } from "../access/principal.ts";
import { checkConfirmed } from "../deletion/check-confirmed.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { environmentResource, noSuchEnvironment } from "./environment.ts";
import { createEnvironmentChanges } from "./environment-changes.ts";
import { findEnvironment, findParentProject, listEnvironments } from "./environment-store.ts";

/**
 * The routes of a project's environments: for the operator, and for the project's own server keys. A
 * key made with `environment_only` reads them, but adds none. Only the operator renames and deletes them.
 */
export function registerEnvironmentRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    answerOnce: AnswerOnce;
    authenticate: Authenticate;
    authenticateOperator: Authenticate;
    now: () => Date;
    newId: () => string;
  },
): void {
  const { sql, writer, answerOnce, authenticate, authenticateOperator } = options;
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
      const project = await findParentProject(sql, params.projectId);
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

  registerRoute(app, contract.updateEnvironment, {
    authenticate: authenticateOperator,
    handle: ({ params, body }, principal) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const renamed = await changes.rename(write, principal, params, body);
        return isRefusal(renamed) ? renamed : answer.ok(environmentResource(renamed));
      }),
  });

  registerRoute(app, contract.deleteEnvironment, {
    authenticate: authenticateOperator,
    handle: ({ params, query }, principal) =>
      checkConfirmed(query.confirm, params.environmentId) ??
      writer(async (write): Promise<Answer | Refusal> => {
        const removed = await changes.remove(write, principal, params);
        return isRefusal(removed) ? removed : answer.noContent();
      }),
  });
}

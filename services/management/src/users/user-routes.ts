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
import type { Authenticate } from "../access/principal.ts";
import { checkConfirmed } from "../deletion/check-confirmed.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import { noSuchOrganization } from "../organizations/organization-changes.ts";
import { findOrganization } from "../organizations/organization-store.ts";
import type { Writer } from "../outbox/write.ts";
import type { User } from "./user.ts";
import { createUserChanges, noSuchUser } from "./user-changes.ts";
import { findUser, listUsers } from "./user-store.ts";

/** The routes of an organization's users, for the operator. */
export function registerUserRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    answerOnce: AnswerOnce;
    authenticate: Authenticate;
    allowDemoUser: boolean;
    now: () => Date;
    newId: () => string;
  },
): void {
  const { sql, writer, answerOnce, authenticate } = options;
  const changes = createUserChanges(options);

  registerRoute(app, contract.createUser, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.createUser, input, principal, async () => {
          const { organizationId } = input.params;
          const created = await changes.create(write, principal, organizationId, input.body);
          if (isRefusal(created)) return created;
          return answer.created(
            `/api/v1/organizations/${created.organizationId}/users/${created.id}`,
            userResource(created),
          );
        }),
      ),
  });

  registerRoute(app, contract.listUsers, {
    authenticate,
    handle: async ({ params }) => {
      const organization = await findOrganization(sql, params.organizationId);
      if (organization === undefined) return noSuchOrganization();
      const users = await listUsers(sql, organization.id);
      return answer.ok({ users: users.map(userResource) });
    },
  });

  registerRoute(app, contract.getUser, {
    authenticate,
    handle: async ({ params }) => {
      const user = await findUser(sql, params);
      if (user === undefined) return noSuchUser();
      return answer.ok(userResource(user));
    },
  });

  registerRoute(app, contract.updateUser, {
    authenticate,
    handle: ({ params, body }, principal) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const changed = await changes.update(write, principal, params, body);
        return isRefusal(changed) ? changed : answer.ok(userResource(changed));
      }),
  });

  registerRoute(app, contract.deleteUser, {
    authenticate,
    handle: ({ params, query }, principal) =>
      checkConfirmed(query.confirm, params.userId) ??
      writer(async (write): Promise<Answer | Refusal> => {
        const { erase = false } = query;
        const removed = await changes.remove(write, principal, params, { erase });
        return isRefusal(removed) ? removed : answer.noContent();
      }),
  });
}

function userResource(user: User): contract.User {
  return {
    id: user.id,
    organization_id: user.organizationId,
    email: user.email,
    name: user.name,
    created_at: user.createdAt.toISOString(),
  };
}

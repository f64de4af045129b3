import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { type App, answer, refuse, registerRoute } from "@halyard/service";
import type { Authenticate } from "../access/principal.ts";
import { attributionOf } from "../audit/attribution.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import { noSuchOrganization } from "../organizations/organization-changes.ts";
import { findOrganization } from "../organizations/organization-store.ts";
import type { Writer } from "../outbox/write.ts";
import type { User } from "./user.ts";
import { findUser, insertUser, listUsers } from "./user-store.ts";

/**
 * The routes of an organization's users, which belong to the platform's operator. An e-mail address
 * may occur twice: it tells people who changed something, the id tells us.
 */
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
  const { sql, writer, answerOnce, authenticate, allowDemoUser, now, newId } = options;

  registerRoute(app, contract.createUser, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.createUser, input, principal, async () => {
          const organization = await findOrganization(write.tx, input.params.organizationId);
          if (organization === undefined) return noSuchOrganization();
          if (!allowDemoUser && contract.isDemoUser(input.body))
            return refuse(
              "VALIDATION_001",
              `/email must not be ${contract.demoUserEmail}: it is the demo user, whose keys keep production from starting`,
            );
          const user: User = {
            id: newId(),
            organizationId: organization.id,
            email: input.body.email,
            name: input.body.name ?? null,
            createdAt: now(),
          };
          await insertUser(write.tx, user);
          await insertAuditEntries(write.tx, [
            {
              id: newId(),
              organizationId: user.organizationId,
              userId: user.id,
              action: "user_created",
              cause: "manual",
              ...(await attributionOf(write.tx, principal)),
              before: null,
              after: auditedUser(user),
              changedAt: user.createdAt,
            },
          ]);
          return answer.created(
            `/api/v1/organizations/${organization.id}/users/${user.id}`,
            userResource(user),
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
      if (user === undefined)
        return refuse("NOT_FOUND_001", "There is no such user in this organization.");
      return answer.ok(userResource(user));
    },
  });
}

/** A user in the audit log. */
function auditedUser({ email, name }: User): Record<string, unknown> {
  return { email, name };
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

import * as contract from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { Routes } from "../access/routes.ts";
import { noSuchUser, userResource } from "../keys/user.ts";
import { findUser, listUsers } from "../keys/user-store.ts";
import { checkConfirmed } from "../tenancy/check-confirmed.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { findOrganization } from "../tenancy/organization-store.ts";
import { changeUser, createUser, removeUser } from "./user-changes.ts";

/** Registers the routes of users, for the operator. */
export function registerUserRoutes(
  routes: Routes,
  { sql, ...demoUsers }: { sql: Sql; allowDemoUser: boolean },
): void {
  routes.write(contract.createUser, {
    run: (change, { params, body }) => createUser(change, params, body, demoUsers),
    answer: (created) =>
      answer.created(
        `/api/v1/organizations/${created.organizationId}/users/${created.id}`,
        userResource(created),
      ),
  });

  routes.read(contract.listUsers, async ({ params }) => {
    const organization = await findOrganization(sql, params.organizationId);
    if (organization === undefined) return noSuchOrganization;
    const users = await listUsers(sql, organization.id);
    return answer.ok({ users: users.map(userResource) });
  });

  routes.read(contract.getUser, async ({ params }) => {
    const user = await findUser(sql, params);
    return user === undefined ? noSuchUser : answer.ok(userResource(user));
  });

  routes.write(contract.updateUser, {
    run: (change, { params, body }) => changeUser(change, params, body, demoUsers),
    answer: (changed) => answer.ok(userResource(changed)),
  });

  routes.write(contract.deleteUser, {
    check: ({ params, query }) => checkConfirmed(query.confirm, params.userId),
    run: (change, { params, query: { erase = false } }) => removeUser(change, params, { erase }),
    answer: answer.noContent,
  });
}

import { keyProblems } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { answer, isProblem, type Problem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { checkReachesEnvironment, type KeyPrincipal } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { environmentResource } from "../tenancy/environment.ts";
import { listEnvironments } from "../tenancy/environment-store.ts";
import { findOrganization } from "../tenancy/organization-store.ts";
import { findProjectOf } from "../tenancy/project-store.ts";
import { keyResource } from "./key.ts";
import { findKey } from "./key-store.ts";
import { findUser } from "./user-store.ts";

/** Registers the route that describes the caller, for the operator and for server keys. */
export function registerIdentityRoute(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.getMe, async (_, principal) => {
    if (principal.kind === "operator") return answer.ok({ kind: "operator" });
    const identity = await readIdentity(sql, principal);
    return isProblem(identity) ? identity : answer.ok(identity);
  });
}

/** A key whose row or owner was deleted since its authentication is invalid, as in its next request. */
async function readIdentity(
  sql: Sql,
  principal: KeyPrincipal,
): Promise<contract.Identity | Problem> {
  const address = principal.key;
  const [key, user, organization, project, environments] = await Promise.all([
    findKey(sql, { ...address, keyId: address.id }),
    findUser(sql, address),
    findOrganization(sql, address.organizationId),
    findProjectOf(sql, address),
    listEnvironments(sql, address.projectId),
  ]);
  if (!key || !user || !organization || !project) return keyProblems.invalid;
  return {
    kind: "server_key",
    key: keyResource(key),
    user: { id: user.id, email: user.email, name: user.name },
    organization: { id: organization.id, name: organization.name, plan: organization.plan },
    project: { id: project.id, name: project.name },
    environments: environments
      .filter(({ id }) => checkReachesEnvironment(principal, id) === undefined)
      .map(environmentResource),
  };
}

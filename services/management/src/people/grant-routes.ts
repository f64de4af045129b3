import * as contract from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { answerAll } from "../access/answer-all.ts";
import type { Routes } from "../access/routes.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { findOrganization } from "../tenancy/organization-store.ts";
import { giveRole, giverOf, withdrawRole } from "./grant-changes.ts";
import { listGrants } from "./grant-store.ts";
import { type Grant, grantResource } from "./grants.ts";
import type { GroupSettings } from "./group-grants.ts";

/** Registers the routes of grants, for signed-in people and the operator. */
export function registerGrantRoutes(
  routes: Routes,
  { sql, ...settings }: { sql: Sql } & GroupSettings,
): void {
  routes.write(contract.createGrant, {
    run: (change, { params, body }) =>
      giveRole(change, giverOf(change.principal), { ...params, ...body }, settings),
    answer: (grant) =>
      answer.created(`/api/v1/organizations/${grant.organizationId}/grants`, grantResource(grant)),
  });

  routes.read(contract.listGrants, async ({ params }) => {
    const organization = await findOrganization(sql, params.organizationId);
    if (organization === undefined) return noSuchOrganization;
    const readPage = (after: Grant | undefined) =>
      listGrants(sql, organization.id, { after, limit: pageSize });
    return answerAll("grants", readPage, grantResource);
  });

  routes.write(contract.deleteGrant, {
    run: (change, { params }) => withdrawRole(change, giverOf(change.principal), params, settings),
    answer: answer.noContent,
  });
}

/** Number of grants that the list reads at a time. */
const pageSize = 1_000;

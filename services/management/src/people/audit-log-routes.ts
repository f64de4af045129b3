import * as contract from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { Routes } from "../access/routes.ts";
import { organizationEntryResource } from "../audit/audit-log.ts";
import { filterOf, pageAnswer, readPage } from "../audit/audit-routes.ts";
import { findOrganizationSequence, listOrganizationChanges } from "../audit/audit-store.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { findOrganization } from "../tenancy/organization-store.ts";

/** Registers the audit log of an organization's people, for owners and the operator. */
export function registerPeopleLog(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.listOrganizationChanges, async ({ params: { organizationId }, query }) => {
    if ((await findOrganization(sql, organizationId)) === undefined) return noSuchOrganization;
    const page = await readPage(query, (id) => findOrganizationSequence(sql, organizationId, id));
    if (isProblem(page)) return page;
    const which = { organizationId, ...filterOf(query) };
    return pageAnswer(await listOrganizationChanges(sql, which, page), organizationEntryResource);
  });
}

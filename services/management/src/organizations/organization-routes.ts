import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { answer } from "@halyard/service";
import type { Routes } from "../access/routes.ts";
import { checkConfirmed } from "../deletion/check-confirmed.ts";
import {
  noSuchOrganization,
  type Organization,
  organizationResource,
  type Plans,
} from "./organization.ts";
import {
  changeOrganization,
  createOrganization,
  removeOrganization,
} from "./organization-changes.ts";
import { findOrganization, listOrganizations } from "./organization-store.ts";

/** Registers the routes of organizations, for the operator. */
export function registerOrganizationRoutes(
  routes: Routes,
  { sql, plans }: { sql: Sql; plans: Plans },
): void {
  const resourceOf = (organization: Organization) => organizationResource(organization, plans);

  routes.write(contract.createOrganization, {
    run: (change, { body }) => createOrganization(change, body, plans),
    answer: (created) => answer.created(`/api/v1/organizations/${created.id}`, resourceOf(created)),
  });

  routes.read(contract.listOrganizations, async () => {
    const organizations = await listOrganizations(sql);
    return answer.ok({ organizations: organizations.map(resourceOf) });
  });

  routes.read(contract.getOrganization, async ({ params }) => {
    const found = await findOrganization(sql, params.organizationId);
    return found === undefined ? noSuchOrganization : answer.ok(resourceOf(found));
  });

  routes.write(contract.updateOrganization, {
    run: (change, { params, body }) =>
      changeOrganization(change, params.organizationId, body, plans),
    answer: (changed) => answer.ok(resourceOf(changed)),
  });

  routes.write(contract.deleteOrganization, {
    check: ({ params, query }) => checkConfirmed(query.confirm, params.organizationId),
    run: (change, { params }) => removeOrganization(change, params.organizationId),
    answer: answer.noContent,
  });
}

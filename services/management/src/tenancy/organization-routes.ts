import * as contract from "@halyard/contracts";
import { answer, createProblem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { Routes } from "../access/routes.ts";
import { checkConfirmed } from "./check-confirmed.ts";
import { noSuchOrganization, organizationResource } from "./organization.ts";
import {
  changeOrganization,
  createOrganization,
  removeOrganization,
} from "./organization-changes.ts";
import { findOrganization, listOrganizations } from "./organization-store.ts";
import { listPlans } from "./plans.ts";

/** Registers the routes of organizations, for the operator and signed-in people, and the list of plans, for any key. */
export function registerOrganizationRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  routes.read(contract.listPlans, async () => answer.ok({ plans: await listPlans(sql) }));

  routes.write(contract.createOrganization, {
    run: (change, { body }) => createOrganization(change, body),
    answer: (created) =>
      answer.created(`/api/v1/organizations/${created.id}`, organizationResource(created)),
  });

  routes.read(contract.listOrganizations, async () => {
    const organizations = await listOrganizations(sql);
    return answer.ok({ organizations: organizations.map(organizationResource) });
  });

  routes.read(contract.getOrganization, async ({ params }) => {
    const found = await findOrganization(sql, params.organizationId);
    return found === undefined ? noSuchOrganization : answer.ok(organizationResource(found));
  });

  routes.write(contract.updateOrganization, {
    run: async (change, { params, body }) =>
      body.plan !== undefined && change.principal.kind !== "operator"
        ? onlyOperatorChangesPlan
        : changeOrganization(change, params.organizationId, body),
    answer: (changed) => answer.ok(organizationResource(changed)),
  });

  routes.write(contract.deleteOrganization, {
    check: ({ params, query }) => checkConfirmed(query.confirm, params.organizationId),
    run: (change, { params, query }) =>
      removeOrganization(change, params.organizationId, query.bypass_reason),
    answer: answer.noContent,
  });
}

const onlyOperatorChangesPlan = createProblem(
  "AUTH_002",
  "Only the operator can change /plan of an organization.",
);

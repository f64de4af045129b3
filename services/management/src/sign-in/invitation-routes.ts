import * as contract from "@halyard/contracts";
import { answer, noSuchRoute } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { Routes } from "../access/routes.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { findOrganization } from "../tenancy/organization-store.ts";
import { listInvitations } from "./invitation-store.ts";
import {
  type InvitationSettings,
  invitationResource,
  invite,
  withdrawInvitation,
} from "./invitations.ts";
import { createLink } from "./links.ts";

/** Registers the routes of invitations and of the operator's links. */
export function registerInvitationRoutes(
  routes: Routes,
  {
    sql,
    byOperator,
    now,
    ...settings
  }: InvitationSettings & { sql: Sql; byOperator: boolean; now: () => Date },
): void {
  routes.write(contract.createSignInLink, {
    check: () => (byOperator ? {} : noSuchRoute),
    run: (change, { params: { organizationId }, body }) =>
      createLink(change, { organizationId, userId: body.user_id }, settings.publicUrl),
    answer: ({ url, expiresAt }) =>
      answer.created("/sign-in", { url, expires_at: expiresAt.toISOString() }),
  });

  routes.write(contract.invite, {
    run: (change, { params, body }) => invite(change, params.organizationId, body, settings),
    answer: ({ url, ...invitation }) =>
      answer.created(`/api/v1/organizations/${invitation.user.organizationId}/invitations`, {
        ...invitationResource(invitation),
        url,
      }),
  });

  routes.read(contract.listInvitations, async ({ params }) => {
    const organization = await findOrganization(sql, params.organizationId);
    if (organization === undefined) return noSuchOrganization;
    const invitations = await listInvitations(sql, organization.id, now());
    return answer.ok({ invitations: invitations.map(invitationResource) });
  });

  routes.write(contract.withdrawInvitation, {
    run: (change, { params }) => withdrawInvitation(change, params),
    answer: answer.noContent,
  });
}

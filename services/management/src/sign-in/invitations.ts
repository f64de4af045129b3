import type {
  CreateInvitation,
  Invitation as InvitationResource,
  SignInMethod,
} from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { type User, userResource } from "../keys/user.ts";
import { findUserByEmail } from "../keys/user-store.ts";
import type { Write } from "../outbox/write.ts";
import { giveRole, giverOf } from "../people/grant-changes.ts";
import { readGrantsBeside } from "../people/grant-store.ts";
import { isSame, readGrant } from "../people/grants.ts";
import type { GroupSettings } from "../people/group-grants.ts";
import { peopleAudit } from "../people/people-audit.ts";
import { createUser } from "../people/user-changes.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { lockOrganization } from "../tenancy/organization-store.ts";
import { findUsersOf } from "./identity-store.ts";
import {
  deleteInvitation,
  deleteInvitationsOf,
  type InvitationContent,
} from "./invitation-store.ts";
import { invalidCode, linkTo, takeUser } from "./links.ts";
import { issueCode } from "./one-time-codes.ts";
import { linkPerson } from "./person-of-user.ts";

/**
 * Invitations. The invited user gets the person who follows the link. Only a completed registration or acceptance uses
 * the link up. A user has at most one open invitation.
 */
type Invitation = { id: string; user: User; createdAt: Date; expiresAt: Date };

const lifetimeMs = 24 * 60 * 60_000;

export type InvitationSettings = GroupSettings & { publicUrl: URL; allowDemoUser: boolean };

/** Invites a person: creates the user unless the address has one, and gives the role. */
export async function invite(
  change: Change,
  organizationId: string,
  request: CreateInvitation,
  settings: InvitationSettings,
): Promise<(Invitation & { url: string }) | Problem> {
  const current = await lockOrganization(change.tx, organizationId);
  if (current === undefined) return noSuchOrganization;
  const { id } = current.organization;
  const user = await provideUser(change, id, request, settings);
  if (isProblem(user)) return user;
  const problem = await provideRole(change, user, request, settings);
  if (problem !== undefined) return problem;
  const { now } = await change.context();
  const invitation = {
    ...{ id: change.newId(), user, createdAt: now },
    expiresAt: new Date(now.getTime() + lifetimeMs),
  };
  await deleteInvitationsOf(change.tx, user.id);
  const code = await issueCode(change.tx, {
    ...{ purpose: "invitation", organizationId: id, expiresAt: invitation.expiresAt },
    content: contentOf(invitation),
  });
  await audit(change, "invited", user.id, id);
  return { ...invitation, url: linkTo(settings.publicUrl, "invitation", code) };
}

async function provideUser(
  change: Change,
  organizationId: string,
  { email, name }: CreateInvitation,
  settings: InvitationSettings,
): Promise<User | Problem> {
  const user = await findUserByEmail(change.tx, { organizationId, email });
  if (user === undefined)
    return createUser(change, { organizationId }, { email, ...(name && { name }) }, settings);
  if (user.kind === "service")
    return createProblem(
      "CONFLICT_001",
      "This address belongs to a service user, which never signs in.",
    );
  if (user.personId === null) return user;
  return createProblem("CONFLICT_001", "This person signs in already: give a role instead.");
}

/** Gives the role, unless the user has it already, so that a person can be invited again. */
async function provideRole(
  change: Change,
  { id, organizationId }: User,
  { role, scope = { organization: organizationId } }: CreateInvitation,
  settings: InvitationSettings,
): Promise<Problem | undefined> {
  const request = { subject: { user_id: id }, role, scope };
  const asked = readGrant(organizationId, request);
  if (isProblem(asked)) return asked;
  const existing = await readGrantsBeside(change.tx, asked);
  if (existing.some((grant) => isSame(grant, asked))) return undefined;
  const giver = giverOf(change.principal);
  const given = await giveRole(change, giver, { organizationId, ...request }, settings);
  return isProblem(given) ? given : undefined;
}

/** Withdraws an open invitation. The user and the role stay. */
export async function withdrawInvitation(
  change: Change,
  address: { organizationId: string; invitationId: string },
): Promise<InvitationContent | Problem> {
  const deleted = await deleteInvitation(change.tx, address);
  if (deleted === undefined) return noSuchInvitation;
  await audit(change, "invitation_withdrawn", deleted.user_id, deleted.organization_id);
  return deleted;
}

/**
 * Uses up an invitation, and links its user to an existing person. Of two requests with one code, one succeeds.
 */
export async function joinByInvitation(
  write: Write,
  { code, personId, via }: { code: string; personId: string; via: SignInMethod },
  timeAndIds: TimeAndIds,
): Promise<User | Problem> {
  const user = await takeUser(write, { purpose: "invitation", code, now: timeAndIds.now() });
  if (user === undefined || user.personId !== null) return invalidCode;
  const { organizationId } = user;
  // Accepting two invitations at the same time must not give one person two users of an organization.
  await write.tx`select from people where id = ${personId} for update`;
  const users = await findUsersOf(write.tx, personId);
  if (users.some((other) => other.organizationId === organizationId))
    return createProblem("CONFLICT_001", "You are already a user of this organization.");
  await linkPerson(write, { user, personId, via }, timeAndIds);
  return user;
}

export function invitationResource({
  id,
  user,
  createdAt,
  expiresAt,
}: Invitation): InvitationResource {
  return {
    id,
    user: userResource(user),
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
  };
}

const noSuchInvitation = createProblem(
  "NOT_FOUND_001",
  "There is no such open invitation in this organization.",
);

const contentOf = ({ id, user, createdAt }: Invitation): InvitationContent => ({
  id,
  organization_id: user.organizationId,
  user_id: user.id,
  created_at: createdAt.toISOString(),
});

async function audit(
  change: Change,
  action: "invited" | "invitation_withdrawn",
  userId: string,
  organizationId: string,
): Promise<void> {
  const entry = { organizationId, userId };
  recordAudit(change, [peopleAudit(action, entry, await change.context())]);
}

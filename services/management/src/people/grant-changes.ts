import type { CreateGrant } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import { roleAt } from "@halyard/people";
import type { Transaction } from "@halyard/postgres";
import type { Principal } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { holdOwner } from "../keys/key-store.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { lockOrganization } from "../tenancy/organization-store.ts";
import {
  deleteGrant,
  findGrant,
  holdProject,
  insertGrant,
  readGrantsBeside,
  readHeldGrants,
  readOwners,
} from "./grant-store.ts";
import {
  checkAddition,
  checkMayGive,
  checkWithdrawal,
  type Grant,
  grantContent,
  grantedRole,
  type NewGrant,
  noSuchGrant,
  type RoleAt,
  readGrant,
  roleOfOperator,
} from "./grants.ts";
import { type GroupSettings, mapsGroups, publishGroups } from "./group-grants.ts";
import { peopleAudit } from "./people-audit.ts";
import { publishUser } from "./publish-user.ts";

/** The use cases of grants. Each runs in the transaction of a write. */

/**
 * The operator, or a signed-in user with the groups of the session. `role` is that of the directory of people. It
 * may be a second old, so the grants of a user are read again.
 */
export type Giver = { role: RoleAt; user?: { userId: string; groups: readonly string[] } };

export function giverOf(principal: Principal): Giver {
  if (principal.kind === "operator") return { role: roleOfOperator };
  const { rights, userId, session } = principal.key;
  return { role: rights.at, user: { userId, groups: session?.groups ?? [] } };
}

/** Gives a role. A locked organization serializes this with other grants, and with the removal of users and projects. */
export async function giveRole(
  change: Change,
  giver: Giver,
  { organizationId, ...request }: CreateGrant & { organizationId: string },
  settings: GroupSettings,
): Promise<Grant | Problem> {
  const { tx } = change;
  const current = await lockOrganization(tx, organizationId);
  if (current === undefined) return noSuchOrganization;
  const asked = readGrant(current.organization.id, request);
  if (isProblem(asked)) return asked;
  const problem = (await checkSubject(tx, asked, settings)) ?? (await checkScope(tx, asked));
  if (problem !== undefined) return problem;
  const held = await readHeld(tx, giver, asked, settings);
  const existing = await readGrantsBeside(tx, asked);
  const rejected = checkAddition(asked, { held, existing });
  if (rejected !== undefined) return rejected;
  const context = await change.context();
  const grant = { ...asked, id: change.newId(), createdAt: context.now };
  await insertGrant(tx, grant);
  const after = grantContent(grant);
  recordAudit(change, [peopleAudit("granted", { ...auditedSubject(grant), after }, context)]);
  await publishSubject(change, grant, settings);
  return grant;
}

/**
 * Withdraws a role. The caller's role of the request is checked first, so that a missing role is reported before the
 * last owner. The role in the database is checked last, because the other one may be a second old.
 */
export async function withdrawRole(
  change: Change,
  giver: Giver,
  address: { organizationId: string; grantId: string },
  settings: GroupSettings,
): Promise<Grant | Problem> {
  const { tx } = change;
  const current = await lockOrganization(tx, address.organizationId);
  const grant = current && (await findGrant(tx, address));
  if (grant === undefined) return noSuchGrant;
  const held = await readHeld(tx, giver, grant, settings);
  const owners = await readOwners(tx, grant.organizationId);
  const problem = checkMayGive(giver.role, grant) ?? checkWithdrawal(grant, { held, owners });
  if (problem !== undefined) return problem;
  await deleteGrant(tx, grant);
  const context = await change.context();
  const before = grantContent(grant);
  recordAudit(change, [
    peopleAudit("grant_withdrawn", { ...auditedSubject(grant), before }, context),
  ]);
  await publishSubject(change, grant, settings);
  return grant;
}

/** Returns the role that a giver has now. */
async function readHeld(
  tx: Transaction,
  { role, user }: Giver,
  { organizationId }: NewGrant,
  settings: GroupSettings,
): Promise<RoleAt> {
  if (user === undefined) return role;
  const groups = mapsGroups(settings, organizationId) ? user.groups : [];
  const found = await readHeldGrants(tx, organizationId, { ...user, groups });
  const grants = found.map(grantedRole);
  return (place) => roleAt(grants, place);
}

async function checkSubject(
  tx: Transaction,
  { organizationId, subject }: NewGrant,
  settings: GroupSettings,
): Promise<Problem | undefined> {
  if ("userId" in subject) {
    const user = await holdOwner(tx, { organizationId, userId: subject.userId });
    if (user !== undefined) return undefined;
    return createProblem("VALIDATION_001", "/subject/user_id must be a user of the organization");
  }
  if (mapsGroups(settings, organizationId)) return undefined;
  return createProblem(
    "VALIDATION_001",
    "/subject/group must be absent: OIDC_GROUPS_ORGANIZATIONS does not name the organization",
  );
}

async function checkScope(tx: Transaction, asked: NewGrant): Promise<Problem | undefined> {
  if (asked.projectId === null || (await holdProject(tx, asked))) return undefined;
  return createProblem(
    "VALIDATION_001",
    "/scope must name a project of the organization, and environments of the project",
  );
}

const auditedSubject = ({ organizationId, subject }: Grant) => ({
  organizationId,
  ...("userId" in subject && { userId: subject.userId }),
});

/** Publishes the roles of the user of a grant, or of all groups of the organization. */
function publishSubject(
  change: Change,
  { organizationId, subject }: Grant,
  settings: GroupSettings,
): Promise<void> {
  return "userId" in subject
    ? publishUser(change, organizationId, subject.userId)
    : publishGroups(change, organizationId, settings);
}

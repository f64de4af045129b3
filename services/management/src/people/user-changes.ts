import { type CreateUser, demoUserEmail, flagEventsStream, isDemoUser } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import { includes, missingRole } from "@halyard/people";
import type { Transaction } from "@halyard/postgres";
import type { Principal } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { decideRevoke } from "../keys/decide-key.ts";
import { carryOut } from "../keys/key-changes.ts";
import { lockKeysOf, lockUnrevokedKeysOfUser } from "../keys/key-store.ts";
import { noSuchUser, type User, type UserAddress, userAudit } from "../keys/user.ts";
import {
  deleteUser,
  eraseUser,
  insertUser,
  isEmailTaken,
  lockDeletedUser,
  lockUser,
  updateUser,
} from "../keys/user-store.ts";
import { eventToPublish } from "../outbox/outbox-message.ts";
import { noSuchOrganization } from "../tenancy/organization.ts";
import { lockOrganization } from "../tenancy/organization-store.ts";
import { listProjectIds } from "../tenancy/project-store.ts";
import { deleteGrantsOf, readOwners } from "./grant-store.ts";
import { checkKeepsOwner } from "./grants.ts";
import { unlinkPerson } from "./person-changes.ts";
import { publishUser } from "./publish-user.ts";

/** The use cases of users. Each runs in the transaction of a write. */
type DemoUsers = { allowDemoUser: boolean };

export async function createUser(
  change: Change,
  { organizationId }: { organizationId: string },
  request: CreateUser,
  demoUsers: DemoUsers,
): Promise<User | Problem> {
  const { tx } = change;
  const { email, name = null, kind = "person" } = request;
  const denied = checkMayManage(change.principal, kind);
  if (denied !== undefined) return denied;
  // The lock serializes the creation of users, so that no two users get the same e-mail address.
  const current = await lockOrganization(tx, organizationId);
  if (current === undefined) return noSuchOrganization;
  const context = await change.context();
  const { id } = current.organization;
  const user: User = {
    id: change.newId(),
    organizationId: id,
    kind,
    email,
    name,
    personId: null,
    createdAt: context.now,
  };
  const problem = await checkEmail(tx, user, demoUsers);
  if (problem !== undefined) return problem;
  await insertUser(tx, user);
  recordAudit(change, [userAudit("user_created", { before: null, after: user }, context)]);
  return user;
}

export async function changeUser(
  change: Change,
  address: UserAddress,
  request: { email?: string | undefined; name?: string | undefined },
  demoUsers: DemoUsers,
): Promise<User | Problem> {
  const { tx } = change;
  const current = await lockOrganization(tx, address.organizationId);
  const before = current && (await lockUser(tx, address));
  if (before === undefined) return noSuchUser;
  const denied = checkMayManage(change.principal, before.kind);
  if (denied !== undefined) return denied;
  const { email = before.email, name = before.name } = request;
  if (email === before.email && name === before.name) return before;
  const after = { ...before, email, name };
  // An address that differs only in case still belongs to this user.
  const isSameEmail = email.toLowerCase() === before.email.toLowerCase();
  const problem = isSameEmail ? undefined : await checkEmail(tx, after, demoUsers);
  if (problem !== undefined) return problem;
  await updateUser(tx, after);
  recordAudit(change, [userAudit("user_changed", { before, after }, await change.context())]);
  return after;
}

export async function removeUser(
  change: Change,
  address: UserAddress,
  { erase }: { erase: boolean },
): Promise<User | Problem> {
  const { tx } = change;
  // Serializes this with other changes of the organization's owners.
  if ((await lockOrganization(tx, address.organizationId)) === undefined) return noSuchUser;
  // Takes the project locks before the user, in the same order as a request that issues a key. Another order could
  // deadlock.
  await lockKeysOf(tx, await listProjectIds(tx, address.organizationId));
  const user = await lockUser(tx, address);
  const denied = checkMayManage(change.principal, user?.kind ?? "person");
  if (denied !== undefined) return denied;
  if (user === undefined) return erase ? eraseDeleted(change, address) : noSuchUser;
  const owners = await readOwners(tx, user.organizationId);
  const problem = checkKeepsOwner(owners, ({ userId }) => userId === user.id);
  if (problem !== undefined) return problem;
  const context = await change.context();
  const keys = await lockUnrevokedKeysOfUser(tx, user.id);
  if (keys.length > 0) await carryOut(change, decideRevoke(keys, context));
  recordAudit(change, [userAudit("user_deleted", { before: user, after: null }, context)]);
  await removeRoles(change, user);
  await deleteUser(tx, user, context.now);
  await publishUser(change, user.organizationId, user.id);
  if (erase) await eraseAddress(change, user);
  return user;
}

/** Removes the grants of a locked user, and the person if it has no other user. */
async function removeRoles(change: Change, user: User): Promise<void> {
  await deleteGrantsOf(change.tx, user.id);
  const { personId } = user;
  if (personId !== null) await unlinkPerson(change, { ...user, personId });
}

/**
 * Erases a user that was deleted. An erased user is erased again, which repeats a message that dispatchers have
 * dead-lettered.
 */
async function eraseDeleted(change: Change, address: UserAddress): Promise<User | Problem> {
  const user = await lockDeletedUser(change.tx, address);
  if (user === undefined) return noSuchUser;
  await eraseAddress(change, user);
  return user;
}

/** Erases the e-mail address of a locked, deleted user here, and publishes the erasure to the webhook dispatchers. */
async function eraseAddress({ tx, publish, now, newId }: Change, user: User): Promise<void> {
  await eraseUser(tx, user.id);
  publish([
    eventToPublish({
      id: newId(),
      event: flagEventsStream.erasureSubject,
      timestamp: now().toISOString(),
      organization_id: user.organizationId,
      user_id: user.id,
    }),
  ]);
}

/** Admins of the organization manage service users, and only owners the users of people. */
function checkMayManage(principal: Principal, kind: User["kind"]): Problem | undefined {
  if (principal.kind === "operator" || kind === "service") return undefined;
  const held = principal.key.rights.at({});
  return includes(held, "owner")
    ? undefined
    : missingRole({ role: "owner", at: "organization" }, held);
}

async function checkEmail(
  tx: Transaction,
  user: User,
  { allowDemoUser }: DemoUsers,
): Promise<Problem | undefined> {
  if (!allowDemoUser && isDemoUser(user))
    return createProblem(
      "VALIDATION_001",
      `/email must not be ${demoUserEmail}: it is the demo user, whose keys keep production from starting`,
    );
  if (!(await isEmailTaken(tx, user))) return undefined;
  return createProblem(
    "CONFLICT_001",
    `The organization already has a user with the e-mail address ${user.email}.`,
  );
}

import { demoUserEmail, isDemoUser } from "@halyard/contracts";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { attributionOf, type ChangeContext } from "../access/change-context.ts";
import type { Principal } from "../access/principal.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { decideRevoke } from "../keys/decide-key.ts";
import { carryOut } from "../keys/key-changes.ts";
import { lockKeysOf, lockUnrevokedKeysOfUser } from "../keys/key-store.ts";
import { noSuchOrganization } from "../organizations/organization-changes.ts";
import { lockOrganization } from "../organizations/organization-store.ts";
import type { Write } from "../outbox/write.ts";
import { listProjectIds } from "../projects/project-store.ts";
import type { User } from "./user.ts";
import {
  deleteUser,
  eraseUser,
  insertUser,
  isEmailTaken,
  lockDeletedUser,
  lockUser,
  updateUser,
} from "./user-store.ts";

type UserAddress = { organizationId: string; userId: string };

/** The use cases of users. Each runs inside a write's transaction. */
export type UserChanges = {
  create(
    write: Write,
    principal: Principal,
    organizationId: string,
    request: { email: string; name?: string | undefined },
  ): Promise<User | Refusal>;
  update(
    write: Write,
    principal: Principal,
    address: UserAddress,
    request: { email?: string | undefined; name?: string | undefined },
  ): Promise<User | Refusal>;
  remove(
    write: Write,
    principal: Principal,
    address: UserAddress,
    options: { erase: boolean },
  ): Promise<User | Refusal>;
};

export function createUserChanges(options: {
  now: () => Date;
  newId: () => string;
  allowDemoUser: boolean;
}): UserChanges {
  const { now, newId, allowDemoUser } = options;

  async function contextOf(write: Write, principal: Principal): Promise<ChangeContext> {
    const attribution = await attributionOf(write.tx, principal);
    return { ...attribution, cause: "manual", now: now(), newId };
  }

  async function checkEmail({ tx }: Write, user: User): Promise<Refusal | undefined> {
    if (!allowDemoUser && isDemoUser(user))
      return refuse(
        "VALIDATION_001",
        `/email must not be ${demoUserEmail}: it is the demo user, whose keys keep production from starting`,
      );
    if (!(await isEmailTaken(tx, user))) return undefined;
    return refuse(
      "CONFLICT_001",
      `The organization already has a user with the e-mail address ${user.email}.`,
    );
  }

  return {
    async create(write, principal, organizationId, { email, name = null }) {
      // The lock lets one user through at a time, so that no two get one e-mail address.
      const current = await lockOrganization(write.tx, organizationId);
      if (current === undefined) return noSuchOrganization();
      const context = await contextOf(write, principal);
      const { id } = current.organization;
      const user = { id: newId(), organizationId: id, email, name, createdAt: context.now };
      const refusal = await checkEmail(write, user);
      if (refusal !== undefined) return refusal;
      await insertUser(write.tx, user);
      await insertAuditEntries(write.tx, [
        userAudit("user_created", { before: null, after: user }, context),
      ]);
      return user;
    },

    async update(write, principal, address, request) {
      const before = await lockOf(write, address);
      if (isRefusal(before)) return before;
      const { email = before.email, name = before.name } = request;
      if (email === before.email && name === before.name) return before;
      const after = { ...before, email, name };
      // Another spelling of the same address stays the address of this user.
      const isSameEmail = email.toLowerCase() === before.email.toLowerCase();
      const refusal = isSameEmail ? undefined : await checkEmail(write, after);
      if (refusal !== undefined) return refusal;
      await updateUser(write.tx, after);
      await insertAuditEntries(write.tx, [
        userAudit("user_changed", { before, after }, await contextOf(write, principal)),
      ]);
      return after;
    },

    async remove(write, principal, address, { erase }) {
      const { tx } = write;
      // The locks of the projects come first, because a request that issues a key takes them in this order.
      await lockKeysOf(tx, await listProjectIds(tx, address.organizationId));
      const user = await lockUser(tx, address);
      if (user === undefined) return erase ? eraseDeleted(write, address) : noSuchUser();
      const context = await contextOf(write, principal);
      const keys = await lockUnrevokedKeysOfUser(tx, user.id);
      if (keys.length > 0) await carryOut(write, decideRevoke(keys, context));
      await insertAuditEntries(tx, [
        userAudit("user_deleted", { before: user, after: null }, context),
      ]);
      await deleteUser(tx, user, { now: context.now, erase });
      return user;
    },
  };
}

/** A user that was deleted without `erase` can be erased later. */
async function eraseDeleted({ tx }: Write, address: UserAddress): Promise<User | Refusal> {
  const user = await lockDeletedUser(tx, address);
  if (user === undefined) return noSuchUser();
  await eraseUser(tx, user.id);
  return user;
}

async function lockOf({ tx }: Write, address: UserAddress): Promise<User | Refusal> {
  const current = await lockOrganization(tx, address.organizationId);
  const user = current && (await lockUser(tx, address));
  return user ?? noSuchUser();
}

export function noSuchUser(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such user in this organization.");
}

function userAudit(
  action: "user_created" | "user_changed" | "user_deleted",
  { before, after }: { before: User; after: null } | { before: User | null; after: User },
  context: ChangeContext,
): AuditEntry {
  const { id, organizationId } = after ?? before;
  return auditEntry(context, {
    organizationId,
    userId: id,
    action,
    before: before && auditedUser(before),
    after: after && auditedUser(after),
  });
}

/** A user in the audit log. */
function auditedUser({ email, name }: User): Record<string, unknown> {
  return { email, name };
}

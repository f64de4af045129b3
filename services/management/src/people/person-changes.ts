import type { Problem } from "@halyard/http";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { noSuchUser, type User, type UserAddress } from "../keys/user.ts";
import { findUser, lockUser } from "../keys/user-store.ts";
import type { Write } from "../outbox/write.ts";
import { peopleAudit } from "./people-audit.ts";
import { publishUser } from "./publish-user.ts";
import { endSessions } from "./sessions.ts";

/** The use cases of the operator for the person of a user. Each runs in the transaction of a write. */

/** Ends all sessions of a user's person, including sessions in use for other organizations. */
export async function endUserSessions(
  change: Change,
  address: UserAddress,
): Promise<User | Problem> {
  const user = await findUser(change.tx, address);
  if (user === undefined) return noSuchUser;
  if (user.personId === null) return user;
  await endSessions(change, { personId: user.personId });
  const entry = { organizationId: user.organizationId, userId: user.id };
  recordAudit(change, [peopleAudit("sessions_ended", entry, await change.context())]);
  return user;
}

/**
 * Unlinks a user from its person. It also accepts the last owner, because the operator repairs accounts with it after the
 * provider has replaced them.
 */
export async function unlinkUser(change: Change, address: UserAddress): Promise<User | Problem> {
  const user = await lockUser(change.tx, address);
  if (user === undefined) return noSuchUser;
  if (user.personId === null) return user;
  await unlinkPerson(change, { ...user, personId: user.personId });
  await publishUser(change, user.organizationId, user.id);
  const entry = { organizationId: user.organizationId, userId: user.id };
  recordAudit(change, [peopleAudit("user_unlinked", entry, await change.context())]);
  return user;
}

/**
 * Unlinks a locked user from its person. A person without another user is removed, with accounts, passkeys and sessions.
 */
export async function unlinkPerson(
  write: Write,
  { id, personId }: { id: string; personId: string },
): Promise<void> {
  const { tx } = write;
  // The lock makes two removals of users of one person wait for each other, so that one of them is the last.
  await tx`select from people where id = ${personId} for update`;
  await tx`update users set person_id = null where id = ${id}`;
  const others = await tx`select from users where person_id = ${personId} limit 1`;
  if (others.count > 0) return;
  await endSessions(write, { personId });
  await tx`delete from people where id = ${personId}`;
}

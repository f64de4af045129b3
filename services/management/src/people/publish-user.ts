import type { PeopleAddress } from "@halyard/contracts";
import { type Message, personToPublish } from "../outbox/outbox-message.ts";
import { ended } from "../outbox/people-entries.ts";
import type { Write } from "../outbox/write.ts";
import { readGrantsBeside } from "./grant-store.ts";
import { grantedRole } from "./grants.ts";
import { sessionLifetimeMs } from "./sessions.ts";

/** Publishes the entry of a user who has or had a role, or has a person. Call it after the last change of the user. */
export async function publishUser(
  { tx, publish }: Pick<Write, "tx" | "publish">,
  organizationId: string,
  userId: string,
): Promise<void> {
  const [{ personId, governed, deletedAt }] = await tx<[Row]>`
    select person_id as "personId", governed, deleted_at as "deletedAt"
    from users where id = ${userId}`;
  if (deletedAt !== null) {
    publish([endOfUser({ organizationId, userId, deletedAt })]);
    return;
  }
  if (personId === null && !governed) return;
  const grants = await readGrantsBeside(tx, { organizationId, subject: { userId } });
  const ids = { organization_id: organizationId, user_id: userId, person_id: personId };
  const content = { kind: "user" as const, ...ids, governed, grants: grants.map(grantedRole) };
  publish([personToPublish({ address: addressOf(organizationId, userId), content })]);
}

type Row = { personId: string | null; governed: boolean; deletedAt: Date | null };

/** Returns the message that ends the entry of a user who was deleted, or whose organization was. */
export function endOfUser({
  organizationId,
  userId,
  deletedAt,
}: {
  organizationId: string;
  userId: string;
  deletedAt: Date;
}): Message {
  // All sessions of the user have ended by then.
  const removableAt = new Date(deletedAt.getTime() + sessionLifetimeMs);
  const address = addressOf(organizationId, userId);
  return personToPublish({ address, content: ended, removableAt });
}

const addressOf = (organizationId: string, userId: string): PeopleAddress => ({
  kind: "user",
  organizationId,
  userId,
});

import type { PeopleAddress } from "@halyard/contracts";
import { type Message, personToPublish } from "../outbox/outbox-message.ts";
import { ended } from "../outbox/people-entries.ts";
import type { Write } from "../outbox/write.ts";
import { readGrantsBeside } from "./grant-store.ts";
import { grantedRole } from "./grants.ts";

/** Sessions of a user who was removed end earlier, so that nobody needs the end of the user's entry any longer. */
const endKeptMs = 7 * 24 * 60 * 60 * 1_000;

/** Publishes the entry of a user who has or had a role, or has a person. Call it after the last change of the user. */
export async function publishUser(
  { tx, publish }: Pick<Write, "tx" | "publish">,
  organizationId: string,
  userId: string,
): Promise<void> {
  const [user] = await tx<{ personId: string | null; governed: boolean; isDeleted: boolean }[]>`
    select person_id as "personId", governed, deleted_at is not null as "isDeleted"
    from users where id = ${userId}`;
  if (user === undefined || user.isDeleted) {
    publish([endOfUser(organizationId, userId)]);
    return;
  }
  const { personId, governed } = user;
  if (personId === null && !governed) return;
  const grants = await readGrantsBeside(tx, { organizationId, subject: { userId } });
  const ids = { organization_id: organizationId, user_id: userId, person_id: personId };
  const content = { kind: "user" as const, ...ids, governed, grants: grants.map(grantedRole) };
  publish([personToPublish({ address: addressOf(organizationId, userId), content })]);
}

/** Returns the message that ends the entry of a user. */
export function endOfUser(organizationId: string, userId: string): Message {
  const removableAt = new Date(Date.now() + endKeptMs);
  const address = addressOf(organizationId, userId);
  return personToPublish({ address, content: ended, removableAt });
}

const addressOf = (organizationId: string, userId: string): PeopleAddress => ({
  kind: "user",
  organizationId,
  userId,
});

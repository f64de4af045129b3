import { personToPublish } from "../outbox/outbox-message.ts";
import { ended } from "../outbox/people-entries.ts";
import type { Write } from "../outbox/write.ts";
import { unlinkPerson } from "./person-changes.ts";
import { endOfUser } from "./publish-user.ts";

/** Maximum number of users per batch. Each takes several statements. */
const usersAtOnce = 50;

/**
 * Removes the roles and persons of the next users in deleted organizations, which row-level security hides. Returns
 * whether any may be left.
 */
export async function removePeople(write: Write, now: Date): Promise<boolean> {
  const { tx, publish } = write;
  await endGroups(write);
  const users = await tx<{ id: string; organizationId: string; personId: string | null }[]>`
    select id, organization_id as "organizationId", person_id as "personId" from users
    where (person_id is not null or governed) and deleted_at is null
      and not exists (select from organizations where organizations.id = users.organization_id)
    order by id
    limit ${usersAtOnce}
    for update skip locked`;
  for (const { id, personId } of users)
    if (personId !== null) await unlinkPerson(write, { id, personId });
  const ids = users.map(({ id }) => id);
  await tx`delete from grants where user_id = any(${ids}::uuid[])`;
  await tx`update users set governed = false where id = any(${ids}::uuid[])`;
  publish(
    users.map(({ organizationId, id }) =>
      endOfUser({ organizationId, userId: id, deletedAt: now }),
    ),
  );
  return users.length > 0;
}

async function endGroups({ tx, publish }: Write): Promise<void> {
  const removed = await tx<{ organizationId: string }[]>`
    delete from grants
    where group_name is not null
      and not exists (select from organizations where organizations.id = grants.organization_id)
    returning organization_id as "organizationId"`;
  publish(
    removed.map(({ organizationId }) =>
      personToPublish({ address: { kind: "groups", organizationId }, content: ended }),
    ),
  );
}

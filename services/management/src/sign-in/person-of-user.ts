import type { SignInMethod } from "@halyard/contracts";
import type { TimeAndIds } from "../access/change-context.ts";
import type { User } from "../keys/user.ts";
import type { Write } from "../outbox/write.ts";
import { publishUser } from "../people/publish-user.ts";
import { insertPerson, linkUser } from "./identity-store.ts";
import { peopleEntry, personContext, recordByOrganization } from "./sign-in-person.ts";

/** Links a locked user to a person. */
export async function linkPerson(
  write: Write,
  { user, personId, via }: { user: User; personId: string; via: SignInMethod },
  timeAndIds: TimeAndIds,
): Promise<void> {
  await linkUser(write.tx, user.id, personId);
  await publishUser(write, user.organizationId, user.id);
  recordByOrganization(write, [
    peopleEntry("user_linked", user, personContext(user, via, timeAndIds)),
  ]);
}

/** Returns the person of a locked user. Creates one for a user who never signed in. */
export async function personOfUser(
  write: Write,
  { user, via }: { user: User; via: SignInMethod },
  timeAndIds: TimeAndIds,
): Promise<string> {
  if (user.personId !== null) return user.personId;
  const personId = timeAndIds.newId();
  await insertPerson(write.tx, personId, timeAndIds.now());
  await linkPerson(write, { user, personId, via }, timeAndIds);
  return personId;
}

import type { Role, SignInMethod } from "@halyard/contracts";
import type { ChangeContext, TimeAndIds } from "../access/change-context.ts";
import type { AuditEntry } from "../audit/audit-log.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { type User, userAudit } from "../keys/user.ts";
import { insertUser } from "../keys/user-store.ts";
import type { Write } from "../outbox/write.ts";
import { insertGrant } from "../people/grant-store.ts";
import { type Grant, grantContent } from "../people/grants.ts";
import { type PeopleAction, peopleAudit } from "../people/people-audit.ts";
import { publishUser } from "../people/publish-user.ts";
import {
  type Admission,
  decideSignIn,
  domainOf,
  type KnownUser,
  type SignInRefusal,
  verifiedEmail,
} from "./identify.ts";
import {
  findOtherPersons,
  findPersonOf,
  findUsersOf,
  insertPerson,
  linkUser,
  lockAdmissions,
  lockIdentity,
  lockUsers,
  upsertIdentity,
} from "./identity-store.ts";
import type { ProviderIdentity } from "./provider-claims.ts";
import type { AdmissionSettings } from "./settings.ts";

/**
 * Identifies the person of an account in the transaction of a sign-in, and gives the person the users of the decision.
 * Returns the id of the person, and what the audit log contains before the sign-in.
 */
export async function signInPerson(
  write: Write,
  identity: ProviderIdentity,
  { settings, ...timeAndIds }: TimeAndIds & { settings: AdmissionSettings },
): Promise<{ personId: string; entries: AuditEntry[] } | { refused: SignInRefusal }> {
  const { tx } = write;
  const email = verifiedEmail(identity, settings);
  await lockIdentity(tx, identity, email);
  const known = await findPersonOf(tx, identity);
  // Organizations are locked before their users, as in every other change of users.
  const admissions = await readAdmissions(write, identity, settings);
  const decision = decideSignIn({
    ...{ identity, settings, admissions, personId: known },
    users: await lockUsers(tx, { personId: known, email }),
    otherPersonIds: await findOtherPersons(tx, identity, email),
  });
  if ("refused" in decision) return decision;
  const now = timeAndIds.now();
  const personId = known ?? timeAndIds.newId();
  if (known === null) await insertPerson(tx, personId, now);
  await upsertIdentity(tx, identity, { personId, email, now });
  const entries: AuditEntry[] = [];
  for (const user of decision.link) {
    await linkUser(tx, user.id, personId);
    await publishUser(write, user.organizationId, user.id);
    entries.push(peopleEntry("user_linked", user, personContext(user, "oidc", timeAndIds)));
  }
  for (const admission of decision.join) {
    const user = newUser(identity, admission, timeAndIds);
    entries.push(...(await join(write, { user, admission, personId }, timeAndIds)));
  }
  return { personId, entries };
}

function readAdmissions(
  { tx }: Write,
  identity: ProviderIdentity,
  settings: AdmissionSettings,
): Promise<Admission[]> | [] {
  const email = verifiedEmail(identity, settings);
  if (email === undefined) return [];
  const { autoJoin, groupsOrganizations } = settings;
  const joins = autoJoin?.domains.includes(domainOf(email)) ?? false;
  const joined = joins ? (autoJoin?.organizationId ?? null) : null;
  return lockAdmissions(tx, identity, { joined, groupsOrganizations });
}

function newUser(
  { email = "", name = null }: { email?: string | undefined; name?: string | null | undefined },
  { organizationId }: Admission,
  { now, newId }: TimeAndIds,
): User {
  return {
    ...{ id: newId(), organizationId, kind: "person", email, name },
    ...{ personId: null, createdAt: now() },
  };
}

/** Creates the user of an admitted person, with the role of the admission. */
async function join(
  write: Write,
  { user, admission, personId }: { user: User; admission: Admission; personId: string },
  timeAndIds: TimeAndIds,
): Promise<AuditEntry[]> {
  const { tx } = write;
  const context = personContext(user, "oidc", timeAndIds);
  await insertUser(tx, user);
  await linkUser(tx, user.id, personId);
  const entries = [userAudit("user_created", { before: null, after: user }, context)];
  if (admission.role !== null) entries.push(await giveRole(write, user, admission.role, context));
  await publishUser(write, user.organizationId, user.id);
  return entries;
}

async function giveRole(
  { tx }: Write,
  user: User,
  role: Role,
  context: ChangeContext,
): Promise<AuditEntry> {
  const grant: Grant = {
    id: context.newId(),
    organizationId: user.organizationId,
    subject: { userId: user.id },
    role,
    projectId: null,
    environmentIds: null,
    createdAt: context.now,
  };
  await insertGrant(tx, grant);
  return peopleEntry("granted", user, context, { ...grantContent(grant) });
}

type AuditedUser = Pick<KnownUser, "id" | "organizationId" | "email">;

/** Returns the context of what a person does to the own sessions: the user in an organization is the actor there. */
export function personContext(
  { id, email }: AuditedUser,
  via: SignInMethod,
  { now, newId }: TimeAndIds,
): ChangeContext {
  return { actor: { id, email }, apiKeyId: null, via, cause: "manual", now: now(), newId };
}

export function peopleEntry(
  action: PeopleAction,
  { id: userId, organizationId }: AuditedUser,
  context: ChangeContext,
  after?: Record<string, unknown>,
): AuditEntry {
  return peopleAudit(action, { organizationId, userId, ...(after && { after }) }, context);
}

/** Records what a person did in the audit log of each of the person's organizations, after earlier entries. */
export async function recordOfPerson(
  write: Write,
  action: PeopleAction,
  {
    personId,
    via,
    entries = [],
    after,
  }: {
    personId: string;
    via: SignInMethod;
    entries?: readonly AuditEntry[];
    after?: Record<string, unknown>;
  },
  timeAndIds: TimeAndIds,
): Promise<void> {
  const users = await findUsersOf(write.tx, personId);
  const added = users.map((user) =>
    peopleEntry(action, user, personContext(user, via, timeAndIds), after),
  );
  recordByOrganization(write, [...entries, ...added]);
}

/** Writes the entries of one organization at a time, because each has its own lock, in the order of the ids. */
export function recordByOrganization(write: Write, entries: readonly AuditEntry[]): void {
  const byOrganization = Object.groupBy(entries, (entry) =>
    "organizationId" in entry ? entry.organizationId : "",
  );
  for (const organizationId of Object.keys(byOrganization).toSorted())
    recordAudit(write, byOrganization[organizationId] ?? []);
}

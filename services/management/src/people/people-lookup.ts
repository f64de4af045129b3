import type { KeyLimits } from "@halyard/api-keys";
import {
  digestOfSecret,
  type FindPlace,
  isSecretOf,
  type LiveSession,
  type MemberUser,
  type People,
  type PeopleDirectory,
} from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import { readGrantsBeside, readHeldGrants } from "./grant-store.ts";
import { grantedRole } from "./grants.ts";
import { type GroupSettings, mapsGroups } from "./group-grants.ts";
import { findSession } from "./sessions.ts";

/**
 * Finds callers as every service does, in directories in memory. This service alone also reads the tables: in place of
 * directories that do not follow the broker, and for sessions and members that the directory does not know, because one
 * that began through another process may not have arrived here. Addresses that have sent too many invalid keys or
 * sessions cause no reads. This service also ends sessions that are not used, which only it knows.
 */
export function createPeopleLookup(
  options: GroupSettings & {
    sql: Sql;
    people: PeopleDirectory;
    places: FindPlace;
    limits: Pick<KeyLimits, "checkAddress">;
    peopleAreCurrent: () => boolean;
    placesAreCurrent: () => boolean;
  },
): People {
  const { sql, people, places, limits, peopleAreCurrent, placesAreCurrent } = options;
  return {
    async session(cookie, nowMs, address) {
      const known = peopleAreCurrent() ? people.session(cookie, nowMs) : undefined;
      if (known === undefined && limits.checkAddress(address, nowMs) !== undefined)
        return undefined;
      const found = known ?? (await readSession(sql, cookie, nowMs));
      return found !== undefined && found.idleUntilMs > nowMs ? found : undefined;
    },
    memberOf: (session, organizationId) =>
      (peopleAreCurrent() ? people.memberOf(session, organizationId) : undefined) ??
      readMember(sql, session, { ...options, organizationId }),
    user: (organizationId, userId) =>
      peopleAreCurrent()
        ? people.user(organizationId, userId)
        : readUser(sql, organizationId, userId),
    places: {
      environment: (id) =>
        placesAreCurrent() ? places.environment(id) : readEnvironmentPlace(sql, id),
      project: (id) => (placesAreCurrent() ? places.project(id) : readProjectPlace(sql, id)),
    },
  };
}

async function readSession(
  sql: Sql,
  { sessionId, secret }: { sessionId: string; secret: string },
  nowMs: number,
): Promise<LiveSession | undefined> {
  const session = await findSession(sql, sessionId);
  // Hashes without a session too, so that the time of the answer says nothing.
  if (!isSecretOf(secret, session?.secretSha256 ?? digestOfSecret("")) || session === undefined)
    return undefined;
  if (session.expiresAt.getTime() <= nowMs) return undefined;
  const { id, personId, via, groups } = session;
  return {
    ...{ id, personId, via, groups },
    signedInAtMs: session.signedInAt.getTime(),
    confirmedAtMs: session.confirmedAt.getTime(),
    expiresAtMs: session.expiresAt.getTime(),
    idleUntilMs: session.idleUntil.getTime(),
  };
}

async function readMember(
  sql: Sql,
  { personId, groups }: LiveSession,
  { organizationId, ...settings }: GroupSettings & { organizationId: string },
): Promise<MemberUser | undefined> {
  const [user] = await sql<{ id: string }[]>`
    select id from users
    where person_id = ${personId} and organization_id = ${organizationId} and deleted_at is null`;
  if (user === undefined) return undefined;
  const counted = mapsGroups(settings, organizationId) ? groups : [];
  const held = await readHeldGrants(sql, organizationId, { userId: user.id, groups: counted });
  return { organizationId, userId: user.id, grants: held.map(grantedRole) };
}

async function readUser(
  sql: Sql,
  organizationId: string,
  userId: string,
): Promise<ReturnType<PeopleDirectory["user"]>> {
  const [user] = await sql<{ governed: boolean; personId: string | null }[]>`
    select governed, person_id as "personId" from users
    where id = ${userId} and organization_id = ${organizationId}`;
  if (user === undefined) return undefined;
  const grants = await readGrantsBeside(sql, { organizationId, subject: { userId } });
  return {
    ...{ kind: "user", organization_id: organizationId, user_id: userId },
    ...{ person_id: user.personId, governed: user.governed, grants: grants.map(grantedRole) },
    ...{ version: 1, committed_at: new Date(0).toISOString() },
  };
}

async function readEnvironmentPlace(sql: Sql, id: string) {
  const [found] = await sql<{ projectId: string; organizationId: string }[]>`
    select project.id as "projectId", project.organization_id as "organizationId"
    from environments as environment
    join projects as project on project.id = environment.project_id
    where environment.id::text = ${id}`;
  return found;
}

async function readProjectPlace(sql: Sql, id: string) {
  const [found] = await sql<{ organizationId: string }[]>`
    select organization_id as "organizationId" from projects where id::text = ${id}`;
  return found;
}

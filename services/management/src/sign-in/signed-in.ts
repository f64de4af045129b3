import type { SignedIn } from "@halyard/contracts";
import { type LiveSession, type People, roleAt, roleWithin } from "@halyard/people";
import type { Sql } from "@halyard/postgres";

/** Reads the organizations and projects of a signed-in person, with the roles of this session. */
export async function readSignedIn(
  session: LiveSession,
  { sql, people }: { sql: Sql; people: Pick<People, "memberOf"> },
): Promise<SignedIn> {
  const users = await sql<(SignedIn["person"] & { organizationId: string })[]>`
    select email, name, organization_id as "organizationId" from users
    where person_id = ${session.personId} and deleted_at is null
    order by created_at, id`;
  const found = await Promise.all(
    users.map(({ organizationId }) => people.memberOf(session, organizationId)),
  );
  const members = found.filter((member) => member !== undefined);
  const rows = await readNames(
    sql,
    members.filter(({ grants }) => grants.length > 0).map(({ organizationId }) => organizationId),
  );
  const organizations = rows.map(({ id, name, projects }) => {
    const { userId = "", grants = [] } =
      members.find(({ organizationId }) => organizationId === id) ?? {};
    return {
      ...{ id, name, user_id: userId, role: roleAt(grants, {}) ?? null },
      projects: projects
        .filter((project) => roleWithin(grants, project.id) !== undefined)
        .map((project) => ({
          ...{ id: project.id, name: project.name },
          role: roleAt(grants, { projectId: project.id }) ?? null,
          environments: project.environments.map((environment) => ({
            ...environment,
            role: roleAt(grants, { projectId: project.id, environmentId: environment.id }) ?? null,
          })),
        })),
    };
  });
  return {
    person: { email: users[0]?.email ?? "", name: users[0]?.name ?? null },
    organizations,
    signed_in_by: session.via,
    signed_in_at: new Date(session.signedInAtMs).toISOString(),
    confirmed_at: new Date(session.confirmedAtMs).toISOString(),
    expires_at: new Date(session.expiresAtMs).toISOString(),
  };
}

type Named = { id: string; name: string };
type NamedProject = Named & { environments: (Named & { protected: boolean })[] };

/** Returns organizations with the names of their projects and environments, each in the order of their names. */
function readNames(
  sql: Sql,
  organizationIds: readonly string[],
): Promise<(Named & { projects: NamedProject[] })[]> {
  return sql<(Named & { projects: NamedProject[] })[]>`
    select organizations.id, organizations.name, coalesce((
      select jsonb_agg(
        jsonb_build_object('id', projects.id, 'name', projects.name, 'environments', coalesce((
          select jsonb_agg(
            jsonb_build_object('id', environments.id, 'name', environments.name,
              'protected', environments.protection is not null)
            order by environments.name, environments.id)
          from environments where environments.project_id = projects.id
        ), '[]'))
        order by projects.name, projects.id)
      from projects where projects.organization_id = organizations.id
    ), '[]') as projects
    from organizations
    where organizations.id = any(${organizationIds as string[]}::uuid[])
    order by organizations.name, organizations.id`;
}

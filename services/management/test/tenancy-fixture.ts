import { json } from "@halyard/postgres";
import { eventually } from "@halyard/testing";
import { v7 as uuidv7 } from "uuid";
import { type Management, operatorToken } from "./management-fixture.ts";

/** Creates organizations and their resources as the operator does, over HTTP. */
export function tenancyOf(management: Management) {
  let counter = 0;

  async function created(path: string, body: unknown) {
    const answer = await management.call(path, { method: "POST", key: operatorToken, body });
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  const organization = (body: Record<string, unknown> = {}) =>
    created("/api/v1/organizations", {
      name: `Organization ${++counter}`,
      plan: "growth",
      ...body,
    });

  const user = (organizationId: string) =>
    created(`/api/v1/organizations/${organizationId}/users`, {
      email: `u${++counter}@example.com`,
    });

  const project = (organizationId: string, body: Record<string, unknown> = {}) =>
    created(`/api/v1/organizations/${organizationId}/projects`, {
      name: `Project ${++counter}`,
      ...body,
    });

  const environment = (projectId: string) =>
    created(`/api/v1/projects/${projectId}/environments`, { name: `Environment ${++counter}` });

  /** Issues a key and waits until management's key directory contains it. */
  async function key(
    environment: { id: string; project_id: string },
    body: Record<string, unknown>,
  ): Promise<{ id: string; key: string; [field: string]: unknown }> {
    const path = `/api/v1/projects/${environment.project_id}/environments/${environment.id}/keys`;
    const issued = await created(path, { kind: "server", name: "A key", ...body });
    await eventually(() => management.directory.find(issued.id, Date.now()) !== undefined);
    return issued;
  }

  /** Creates an organization with a user, a project, and a server key of that user. */
  async function scope(
    environments: readonly string[] = ["production", "staging"],
    ofOrganization: Record<string, unknown> = {},
  ) {
    const { id: organizationId } = await organization(ofOrganization);
    const { id: userId } = await user(organizationId);
    const made = await project(organizationId, { environments });
    const [first, second] = made.environments;
    const { key: serverKey } = await key(first, { user_id: userId });
    return { organizationId, userId, project: made, first, second, serverKey };
  }

  return { organization, user, project, environment, key, scope };
}

/**
 * Inserts enabled flags with a state in one environment. Direct inserts are faster than HTTP for many flags.
 * Returns their ids in the order of their keys.
 */
export async function seedFlags(
  { sql }: Management,
  scope: { projectId: string; environmentId: string; userId: string },
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => uuidv7());
  const content = { enabled: true, rollout_percentage: 100, targeting_rules: [] };
  await sql`
    insert into flags (id, project_id, key, name, description, type, version, last_event_at,
      created_at, updated_at)
    select id, ${scope.projectId}, 'flag-' || lpad(position::text, 6, '0'), 'f', '', 'release', 1,
      date, date, date
    from unnest(${ids}::uuid[]) with ordinality as flag (id, position),
      date_trunc('milliseconds', now()) as date`;
  await sql`
    insert into flag_states (flag_id, environment_id, content, version, updated_at)
    select id, ${scope.environmentId}, ${json(content)}, 1, created_at
    from flags where id = any(${ids}::uuid[])`;
  await sql`
    insert into history (id, flag_id, environment_id, content, change_type, changed_by, changed_at)
    select gen_random_uuid(), id, ${scope.environmentId}, ${json(content)}, 'manual',
      ${scope.userId}, created_at
    from flags where id = any(${ids}::uuid[])`;
  return ids;
}

/** Returns the values of a snapshot entry in the outbox, oldest first. */
export async function entriesOf(management: Management, subject: string) {
  const rows = await management.sql<{ payload: string }[]>`
    select payload from outbox where stream = 'snapshot' and subject = ${subject} order by id`;
  return rows.map((row) => JSON.parse(row.payload));
}

/** Reads the `Location` of a response to a creation. */
export async function readLocationOf(
  management: Management,
  answer: { headers: Headers },
  key: string,
) {
  const path = answer.headers.get("location");
  if (path === null) throw new Error("the answer has no Location");
  return management.call(path, { key });
}

import { type SnapshotEntry, stateOf } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { audienceEntry, chunkEntry } from "../audiences/audience.ts";
import { audiencesAfter } from "../audiences/audience-store.ts";
import { chunkAfter } from "../audiences/list-store.ts";
import { flagEntry } from "../flags/flag.ts";
import { variationColumns } from "../flags/flag-store.ts";
import { keyEntry } from "../keys/key.ts";
import { workingKeysAfter } from "../keys/key-store.ts";
import { scopeTombstonesAfter } from "../tenancy/deletion-store.ts";
import { environmentEntry } from "../tenancy/environment.ts";
import { organizationEntry } from "../tenancy/organization.ts";
import { plansEntry, readPlans } from "../tenancy/plans.ts";
import { projectEntry } from "../tenancy/project.ts";

/**
 * Bounds of a page, which is published as one batch that a slow broker must acknowledge in time. `bytes` counts
 * the states of flags and the conditions of audiences, the only large parts of entries. A page has one chunk of a list.
 */
const pageBounds = { rows: 500, bytes: 256 * 1024 };

/**
 * Reads the content of the snapshot from the tables, in pages by primary key. Each page is a separate statement.
 * Nothing stays open in the database between two pages, so the caller may take any time.
 *
 * Pages show different moments. A change between two pages has an unsent row in the outbox.
 */
export async function* readFullState(sql: Sql): AsyncGenerator<readonly SnapshotEntry[]> {
  const plans = await readPlans(sql);
  if (plans !== undefined) yield [plansEntry(plans)];
  // Includes tombstones, because rows from before a deletion may still be unsent and follow the pages.
  const scopes = (last?: SnapshotEntry) => scopeTombstonesAfter(sql, last, pageBounds.rows);
  for await (const tombstones of pages(scopes)) yield tombstones;
  const byId = <Row extends { id: string }>(read: (sql: Sql, id: string) => Promise<Row[]>) =>
    pages((last: Row | undefined) => read(sql, last?.id ?? nilId));
  for await (const rows of byId(organizationsAfter)) yield rows.map(organizationEntry);
  for await (const rows of byId(projectsAfter)) yield rows.map(projectEntry);
  for await (const rows of byId(environmentsAfter)) yield rows.map(environmentEntry);
  const keys = (last?: { id: string }) => workingKeysAfter(sql, last?.id ?? "", pageBounds.rows);
  for await (const rows of pages(keys))
    yield rows.map((key) => keyEntry({ ...key, committedAt: key.createdAt }));
  // Chunks precede the audiences that name them, and audiences the flags that use them.
  for await (const [chunk] of pages((last?: ChunkRow) => chunkAfter(sql, last ?? beforeChunks)))
    if (chunk !== undefined) yield [chunkEntry(chunk)];
  const audiences = (last?: { id: string }) => audiencesAfter(sql, last?.id ?? nilId, pageBounds);
  for await (const found of pages(audiences)) yield found.map(audienceEntry);
  for await (const rows of pages((last: FlagRow | undefined) => flagsAfter(sql, last)))
    yield rows.map((row) => flagEntry(row, { ...row, content: stateOf(row.content) }));
}

async function* pages<Row>(
  readAfter: (last: Row | undefined) => PromiseLike<Row[]>,
): AsyncGenerator<Row[]> {
  let rows = await readAfter(undefined);
  while (rows.length > 0) {
    yield rows;
    rows = await readAfter(rows.at(-1));
  }
}

/** Lowest UUID. */
const nilId = "00000000-0000-0000-0000-000000000000";

type ChunkRow = Awaited<ReturnType<typeof chunkAfter>>[number];
const beforeChunks = { audienceId: nilId, position: 0 };

type OrganizationRow = Parameters<typeof organizationEntry>[0];
type ProjectRow = Parameters<typeof projectEntry>[0];
type EnvironmentRow = Parameters<typeof environmentEntry>[0];
type FlagRow = Parameters<typeof flagEntry>[0] & Parameters<typeof flagEntry>[1];

const organizationsAfter = (sql: Sql, id: string) => sql<OrganizationRow[]>`
  select organization.id, organization.name, organization.plan, organization.version,
         organization.updated_at as "updatedAt",
         (select count(*)::integer from projects as project
           where project.organization_id = organization.id) as "projectCount"
  from organizations as organization
  where organization.id > ${id}
  order by organization.id
  limit ${pageBounds.rows}`;

const projectsAfter = (sql: Sql, id: string) => sql<ProjectRow[]>`
  select id, organization_id as "organizationId", name, version,
         coalesce(updated_at, created_at) as "updatedAt"
  from projects
  where id > ${id}
  order by id
  limit ${pageBounds.rows}`;

const environmentsAfter = (sql: Sql, id: string) => sql<EnvironmentRow[]>`
  select environment.id, environment.project_id as "projectId",
         project.organization_id as "organizationId",
         environment.name, environment.protection, environment.version,
         coalesce(environment.updated_at, environment.created_at) as "updatedAt"
  from environments as environment
  join projects as project on project.id = environment.project_id
  where environment.id > ${id}
  order by environment.id
  limit ${pageBounds.rows}`;

/** Reads as many flags as fit the bounds, and at least one. */
const flagsAfter = (sql: Sql, last: FlagRow | undefined) => sql<FlagRow[]>`
  select flag.id, project.organization_id as "organizationId", flag.project_id as "projectId",
         flag.key, ${variationColumns}, state.environment_id as "environmentId", state.content,
         state.version,
         state.updated_at as "updatedAt"
  from (
    select next.*,
           sum(octet_length(next.content::text) + next.value_bytes)
             over (order by next.flag_id, next.environment_id)
             - octet_length(next.content::text) - next.value_bytes as bytes_before
    from (
      select any_state.*
      from flag_states as any_state
      where (any_state.flag_id, any_state.environment_id)
        > (${last?.id ?? nilId}, ${last?.environmentId ?? nilId})
        -- Excludes states of deleted environments. After the limit, they could fill a page and end the reading. With a
        -- join in place of the subquery and without statistics, PostgreSQL would join all states before it uses the
        -- order of the index.
        and (
          select true from environments as environment where environment.id = any_state.environment_id
        )
      order by any_state.flag_id, any_state.environment_id
      limit ${pageBounds.rows}
    ) as next
  ) as state
  join flags as flag on flag.id = state.flag_id
  join projects as project on project.id = flag.project_id
  where state.bytes_before < ${pageBounds.bytes}
  order by state.flag_id, state.environment_id`;

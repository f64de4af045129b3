import { fragment, type Sql } from "@halyard/postgres";
import type { StoredAuditEntry } from "../audit/audit-log.ts";
import { type AuditLog, changesUsers, entryColumns } from "../audit/audit-store.ts";

/**
 * The entries of a stream: all entries of an audit log, or only the entries of one environment and those that change the
 * list of flags.
 */
export type Feed = AuditLog & { environmentId: string | undefined };

/**
 * Selects the entries of flags that are created, change their settings or are deleted, which every key of the project
 * sees in the list of flags. The migration of their index has the same condition.
 */
const changesFlagList = fragment`action in ('created', 'settings', 'deleted')`;

/** The newest visible entry of a feed. An empty feed has the sequence 0 and the nil UUID. */
export type Newest = { entryId: string; sequence: number; projectExists: boolean };

/** Id of an imaginary entry before all others. */
export const nilId = "00000000-0000-0000-0000-000000000000";

/** Returns the newest visible entries of feeds, in their order. */
export function readNewest(sql: Sql, feeds: readonly Feed[]): Promise<Newest[]> {
  const newest = fragment`order by sequence desc limit 1`;
  return sql<Newest[]>`
    select coalesce(newest.id, ${nilId}) as "entryId", coalesce(newest.sequence, 0) as sequence,
      exists (select from projects where projects.id = feed.project_id) as "projectExists"
    from unnest(
      ${feeds.map((feed) => feed.projectId)}::uuid[],
      ${feeds.map((feed) => feed.organizationId)}::uuid[],
      ${feeds.map((feed) => feed.environmentId ?? null)}::uuid[]
    ) with ordinality as feed (project_id, organization_id, environment_id, position)
    left join lateral (
      (
        select id, sequence from changes
        where feed.environment_id is null and project_id = feed.project_id ${newest}
      )
      union all (
        select id, sequence from changes
        where feed.environment_id is null and organization_id = feed.organization_id
          and ${changesUsers} ${newest}
      )
      union all (
        select id, sequence from changes
        where project_id = feed.project_id and environment_id = feed.environment_id ${newest}
      )
      union all (
        select id, sequence from changes
        where feed.environment_id is not null and project_id = feed.project_id
          and ${changesFlagList} ${newest}
      )
      ${newest}
    ) as newest on true
    order by feed.position`;
}

const entriesOf = (feed: Feed, range: { after: number; upTo: number; limit: number }) => {
  const inRange = fragment`
    and sequence > ${range.after} and sequence <= ${range.upTo}
    order by sequence
    limit ${range.limit}`;
  const ofProject = fragment`select * from changes where project_id = ${feed.projectId}`;
  const { environmentId } = feed;
  // Each branch reads its own index in order.
  const branches =
    environmentId === undefined
      ? fragment`
        (${ofProject} ${inRange})
        union all (
          select * from changes
          where organization_id = ${feed.organizationId} and ${changesUsers} ${inRange}
        )`
      : fragment`
        (${ofProject} and environment_id = ${environmentId} ${inRange})
        union all (
          ${ofProject} and ${changesFlagList}
            and environment_id is distinct from ${environmentId} ${inRange}
        )`;
  return fragment`
    select * from (${branches}) as either
    order by sequence
    limit ${range.limit}`;
};

/** Bounds of a page. The bytes bound the memory that a stream with a slow reader holds. */
const pageEntries = 100;
const pageBytes = 1024 * 1024;

export type SequencedEntry = StoredAuditEntry & { sequence: number };

/** Returns the next entries of a feed, oldest first. A page has at least one entry if there is any. */
export function readPageAfter(
  sql: Sql,
  feed: Feed,
  range: { after: number; upTo: number },
): Promise<SequencedEntry[]> {
  return sql<SequencedEntry[]>`
    select ${entryColumns}, sequence
    from (
      select found.*,
        sum(
          coalesce(octet_length(state_before::text), 0) + coalesce(octet_length(state_after::text), 0)
        ) over (order by sequence rows between unbounded preceding and 1 preceding) as bytes_before
      from (${entriesOf(feed, { ...range, limit: pageEntries })}) as found
    ) as measured
    where coalesce(bytes_before, 0) < ${pageBytes}
    order by sequence`;
}

/** Returns the number of entries after a sequence, or `limit` if there are more. */
export async function countAfter(
  sql: Sql,
  feed: Feed,
  { after, limit }: { after: number; limit: number },
): Promise<number> {
  const range = { after, upTo: Number.MAX_SAFE_INTEGER, limit };
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from (${entriesOf(feed, range)}) as found`;
  return row.count;
}

/** Returns the organization of a project; undefined for a deleted or unknown project. */
export async function findOrganizationOfExisting(
  sql: Sql,
  projectId: string,
): Promise<string | undefined> {
  const [project] = await sql<{ organizationId: string }[]>`
    select organization_id as "organizationId" from projects where id = ${projectId}`;
  return project?.organizationId;
}

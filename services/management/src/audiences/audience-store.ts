import { matchOf } from "@halyard/contracts";
import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type {
  Audience,
  AudienceHistory,
  AudienceScope,
  AudienceUse,
  StoredList,
} from "./audience.ts";

/** Audiences in PostgreSQL. Those of a deleted project are invisible, because its row is. */

type Row = Omit<Audience, "list"> & {
  listAttribute: string | null;
  listId: string | null;
  listCount: number | null;
  fingerprintKey: string | null;
  chunks: string[] | null;
};

const columns = fragment`
  audience.id, audience.organization_id as "organizationId", audience.project_id as "projectId",
  audience.key, audience.name, audience.description, audience.match,
  audience.list_attribute as "listAttribute", audience.list_id as "listId",
  audience.list_count as "listCount", audience.version, audience.created_at as "createdAt",
  audience.updated_at as "updatedAt",
  case when audience.list_id is not null then (
    select encode(known.key, 'hex') from fingerprint_keys as known
    where known.project_id = audience.project_id
  ) end as "fingerprintKey",
  case when audience.list_id is not null then array(
    select chunk.sha256 from audience_chunks as chunk
    where chunk.audience_id = audience.id
    order by chunk.position
  ) end as chunks`;

const tables = fragment`
  audiences as audience join projects as project on project.id = audience.project_id`;

function fromRow(row: Row): Audience {
  const { listAttribute, listId, listCount, fingerprintKey, chunks, ...audience } = row;
  return { ...audience, match: matchOf(audience.match), list: listFrom(row) };
}

function listFrom({
  listAttribute,
  listId,
  listCount,
  fingerprintKey,
  chunks,
}: Row): StoredList | null {
  if (
    listId === null ||
    listAttribute === null ||
    listCount === null ||
    fingerprintKey === null ||
    chunks === null
  )
    return null;
  return { id: listId, attribute: listAttribute, count: listCount, fingerprintKey, chunks };
}

export async function findAudience(
  sql: Sql | Transaction,
  { projectId, key }: AudienceScope,
): Promise<Audience | undefined> {
  const [row] = await sql<Row[]>`
    select ${columns} from ${tables}
    where audience.project_id = ${projectId} and audience.key = ${key}`;
  return row && fromRow(row);
}

/** Reads and locks an audience. The project cannot be deleted until the transaction ends. */
export async function lockAudience(
  tx: Transaction,
  { projectId, key }: AudienceScope,
): Promise<Audience | undefined> {
  const locked = await tx`
    select audience.id from ${tables}
    where audience.project_id = ${projectId} and audience.key = ${key}
    for update of audience
    for key share of project`;
  // A separate statement, because the chunks in the first one could be older than its lock.
  return locked.count === 0 ? undefined : findAudience(tx, { projectId, key });
}

/** Returns a page of audiences in the order of their keys: as many as fit the bounds, and at least one. */
export async function listAudiences(
  sql: Sql,
  projectId: string,
  page: { after: string; limit: number; maxBytes: number },
): Promise<Audience[]> {
  const rows = await sql<Row[]>`
    select ${columns}
    from (
      select next.*, sum(next.configuration_bytes) over (
        order by next.key rows between unbounded preceding and 1 preceding
      ) as bytes_before
      from audiences as next
      where next.project_id = ${projectId} and next.key > ${page.after}
      order by next.key
      limit ${page.limit}
    ) as audience
    join projects as project on project.id = audience.project_id
    where coalesce(bytes_before, 0) < ${page.maxBytes}
    order by audience.key`;
  return rows.map(fromRow);
}

/** Returns the audiences after an id, for a rebuild of the snapshot: as many as fit the bounds, and at least one. */
export async function audiencesAfter(
  sql: Sql,
  id: string,
  bounds: { rows: number; bytes: number },
): Promise<Audience[]> {
  const rows = await sql<Row[]>`
    select ${columns}
    from (
      select next.*, sum(octet_length(next.match::text)) over (
        order by next.id rows between unbounded preceding and 1 preceding
      ) as bytes_before
      from audiences as next
      where next.id > ${id}
        -- Excludes audiences of deleted projects, as for the states of deleted environments.
        and (select true from projects as project where project.id = next.project_id)
      order by next.id
      limit ${bounds.rows}
    ) as audience
    where coalesce(bytes_before, 0) < ${bounds.bytes}
    order by audience.id`;
  return rows.map(fromRow);
}

export async function countAudiences(tx: Transaction, projectId: string): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::integer as count from audiences where project_id = ${projectId}`;
  return row.count;
}

/** Inserts an audience. Returns false if its key is taken, or if the project is deleted. */
export async function insertAudience(tx: Transaction, audience: Audience): Promise<boolean> {
  const inserted = await tx`
    insert into audiences (id, organization_id, project_id, key, name, description, match, version,
      created_at, updated_at)
    select ${audience.id}, ${audience.organizationId}, id, ${audience.key}, ${audience.name},
      ${audience.description}, ${json(audience.match)}, ${audience.version}, ${audience.createdAt},
      ${audience.updatedAt}
    from projects where id = ${audience.projectId}
    on conflict on constraint audience_key_taken do nothing`;
  return inserted.count > 0;
}

/** Writes a locked audience. The chunks of its list are written separately. */
export async function updateAudience(tx: Transaction, audience: Audience): Promise<void> {
  const { list } = audience;
  await tx`
    update audiences
    set name = ${audience.name}, description = ${audience.description},
      match = ${json(audience.match)}, list_attribute = ${list?.attribute ?? null},
      list_id = ${list?.id ?? null}, list_count = ${list?.count ?? null},
      version = ${audience.version}, updated_at = ${audience.updatedAt}
    where id = ${audience.id}`;
}

/** Deletes an audience with its history and its chunks. */
export async function deleteAudience(tx: Transaction, { id }: Audience): Promise<void> {
  await tx`delete from audiences where id = ${id}`;
}

export async function insertAudienceHistory(
  tx: Transaction,
  entry: AudienceHistory,
): Promise<void> {
  await tx`
    insert into audience_history (audience_id, version, change, name, description, match,
      list_attribute, list_count, added, removed, changed_by, changed_at)
    values (${entry.audienceId}, ${entry.version}, ${entry.change}, ${entry.name},
      ${entry.description}, ${entry.match && json(entry.match)}, ${entry.list?.attribute ?? null},
      ${entry.list?.count ?? null}, ${entry.added}, ${entry.removed}, ${entry.changedBy},
      ${entry.changedAt})`;
}

/** Returns a page of the history of an audience, newest first, and whether there are older entries. */
export async function listAudienceHistory(
  sql: Sql,
  { id }: Audience,
  page: { before: number; limit: number; maxBytes: number },
): Promise<{ entries: AudienceHistory[]; more: boolean }> {
  const rows = await sql<(AudienceHistory & { available: number })[]>`
    select "audienceId", version, change, name, description, match, list, added, removed,
      "changedBy", "changedAt", available
    from (
      select entry.audience_id as "audienceId", entry.version, entry.change, entry.name,
        entry.description, entry.match, entry.added, entry.removed,
        case when entry.list_count is not null then jsonb_build_object(
          'attribute', entry.list_attribute, 'count', entry.list_count
        ) end as list,
        entry.changed_by as "changedBy", entry.changed_at as "changedAt",
        (count(*) over ())::integer as available,
        sum(octet_length(entry.match::text)) over (
          order by entry.version desc rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from (
        select * from audience_history
        where audience_id = ${id} and version < ${page.before}
        order by version desc
        limit ${page.limit + 1}
      ) as entry
    ) as measured
    where coalesce(bytes_before, 0) < ${page.maxBytes}
    order by version desc`;
  const entries = rows.slice(0, page.limit).map(({ available: _, ...entry }) => ({
    ...entry,
    match: entry.match && matchOf(entry.match),
  }));
  return { entries, more: (rows[0]?.available ?? 0) > entries.length };
}

/**
 * Returns the states whose rules use audiences of a project, by the key of the audience. With an environment, only those
 * of this environment.
 */
export async function usesOf(
  sql: Sql | Transaction,
  {
    projectId,
    keys,
    environmentId,
  }: { projectId: string; keys: readonly string[]; environmentId: string | null },
): Promise<Map<string, AudienceUse[]>> {
  const rows = await sql<(AudienceUse & { key: string })[]>`
    select reference.key, flag.id as "flagId", flag.key as "flagKey",
      environment.id as "environmentId", environment.name as "environmentName",
      (state.content ->> 'enabled')::boolean as enabled
    from environments as environment
    join flag_references as reference
      on reference.environment_id = environment.id and reference.kind = 'audience'
    join flags as flag on flag.id = reference.flag_id
    join flag_states as state
      on state.flag_id = flag.id and state.environment_id = environment.id
    where environment.project_id = ${projectId}
      and reference.key = any(${keys as string[]})
      and (${environmentId}::uuid is null or environment.id = ${environmentId})
    order by flag.key, environment.name`;
  const uses = new Map<string, AudienceUse[]>(keys.map((key) => [key, []]));
  for (const { key, ...use } of rows) uses.get(key)?.push(use);
  return uses;
}

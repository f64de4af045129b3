import { type Match, matchOf, stateOf } from "@halyard/contracts";
import { type Fragment, fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import { maxPageBytes } from "../access/page-bounds.ts";
import type { Subject } from "./base.ts";
import type { ChangeRequest, DecidedChange } from "./change-request.ts";

/** Change requests in PostgreSQL. Those of a deleted project are removed with it. */
const columns = fragment`
  request.id, request.project_id as "projectId", request.organization_id as "organizationId",
  request.title, request.reason, request.status, request.changes, request.base,
  request.content_hash as "contentHash", request.environment_ids as "environmentIds",
  request.approvals, request.apply_at as "applyAt", request.created_by as "createdBy",
  request.created_at as "createdAt", request.version, request.updated_at as "updatedAt",
  request.contributors,
  request.draft_sha256 as "draftSha256", request.applied_at as "appliedAt",
  request.cause_id as "causeId", request.applied_entries as "appliedEntries",
  request.closed_by as "closedBy", request.comment, request.bypass_reason as "bypassReason"`;

const tables = fragment`
  change_requests as request join projects as project on project.id = request.project_id`;

/** `jsonb` does not keep the order of members. */
function fromRow(row: ChangeRequest): ChangeRequest {
  return { ...row, changes: row.changes.map(ordered) };
}

function ordered(change: DecidedChange): DecidedChange {
  if (change.kind === "state")
    return {
      ...change,
      ...{ before: stateOf(change.before), after: stateOf(change.after) },
      patch: stateOf(change.patch as object),
    } as DecidedChange;
  if (change.kind !== "audience") return change;
  const { patch, before } = change;
  return {
    ...change,
    patch: patch.match === undefined ? patch : { ...patch, match: matchOf(patch.match as Match) },
    before: { ...before, match: matchOf(before.match) },
  };
}

/** A request of a project, or of any project for the operator. */
type RequestScope = { id: string; projectId: string | null };

export async function findRequest(
  sql: Sql | Transaction,
  { id, projectId }: RequestScope,
): Promise<ChangeRequest | undefined> {
  const [row] = await sql<ChangeRequest[]>`
    select ${columns} from ${tables}
    where request.id = ${id} and (${projectId}::uuid is null or request.project_id = ${projectId})`;
  return row && fromRow(row);
}

export async function lockRequest(
  tx: Transaction,
  { id, projectId }: RequestScope,
): Promise<ChangeRequest | undefined> {
  const [row] = await tx<ChangeRequest[]>`
    select ${columns} from ${tables}
    where request.id = ${id} and (${projectId}::uuid is null or request.project_id = ${projectId})
    for update of request`;
  return row && fromRow(row);
}

/** An open or approved request without the values of its changes. */
export type OpenRequest = Pick<ChangeRequest, "id" | "status" | "base"> & {
  changes: readonly Subject[];
};

/** Returns the requests of a project that could be applied if nothing else has changed, and the number of stale ones. */
export async function readOpen(
  sql: Sql | Transaction,
  { projectId, environmentId }: InProject,
): Promise<{ open: OpenRequest[]; stale: number }> {
  const inEnvironment = affectsOnly(environmentId);
  const [open, [stale]] = await Promise.all([
    sql<OpenRequest[]>`
      select request.id, request.status, request.base, (
        select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
          'kind', change -> 'kind', 'flag_id', change -> 'flag_id',
          'environment_id', change -> 'environment_id', 'audience', change -> 'audience'
        )))
        from jsonb_array_elements(request.changes) as change
      ) as changes
      from ${tables}
      where request.project_id = ${projectId} and request.status in ('open', 'approved')
        ${inEnvironment}`,
    sql<[{ count: number }]>`
      select count(*)::integer as count from ${tables}
      where request.project_id = ${projectId} and request.status = 'stale' ${inEnvironment}`,
  ]);
  return { open, stale: stale.count };
}

/** Returns the projects with open or approved requests, and the sequence of the newest entry of their audit logs. */
export function findProjectsWithOpen(
  sql: Sql,
): Promise<{ projectId: string; sequence: number | null }[]> {
  return sql`
    select project.id as "projectId", (
      select change.sequence from changes as change
      where change.project_id = project.id
      order by change.sequence desc
      limit 1
    ) as sequence
    from projects as project
    where exists (
      select from change_requests as request
      where request.project_id = project.id and request.status in ('open', 'approved')
    )`;
}

type InProject = {
  projectId: string;
  /** Selects the requests that affect no other environment. */
  environmentId?: string | undefined;
};

const affectsOnly = (environmentId: string | undefined): Fragment =>
  environmentId === undefined
    ? fragment``
    : fragment`and request.environment_ids = array[${environmentId}::uuid]`;

/** Returns requests, newest first: fewer than `limit` if their changes are large. Ids are in the order of time. */
export async function listRequests(
  sql: Sql,
  { projectId, environmentId, statuses, staleIds }: RequestFilter,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<{ requests: ChangeRequest[]; more: boolean }> {
  const alsoIds = statuses.includes("stale") ? staleIds : [];
  const rows = await sql<(ChangeRequest & { available: number })[]>`
    select ${columns}, available
    from (
      select request.*, (count(*) over ())::integer as available,
        sum(octet_length(request.changes::text)) over (
          order by request.id desc rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from ${tables}
      where request.project_id = ${projectId} ${affectsOnly(environmentId)}
        and (
          (request.status = any(${statuses as string[]})
            and request.id <> all(${staleIds as string[]}::uuid[]))
          or request.id = any(${alsoIds as string[]}::uuid[])
        )
        and (${before ?? null}::uuid is null or request.id < ${before ?? null})
      order by request.id desc
      limit ${limit + 1}
    ) as request
    where coalesce(bytes_before, 0) < ${maxPageBytes}
    order by request.id desc`;
  const requests = rows.slice(0, limit).map(({ available: _, ...row }) => fromRow(row));
  return { requests, more: (rows[0]?.available ?? 0) > requests.length };
}

type RequestFilter = InProject & {
  /** The statuses of the API. */
  statuses: readonly string[];
  /** The open and approved requests that are stale. */
  staleIds: readonly string[];
};

/** Counts the requests of a project that have not ended, and those of one author among them. */
export async function countPending(
  tx: Transaction,
  { projectId, createdBy }: Pick<ChangeRequest, "projectId" | "createdBy">,
): Promise<{ ofProject: number; ofAuthor: number }> {
  const [row] = await tx<[{ ofProject: number; ofAuthor: number }]>`
    select count(*)::integer as "ofProject",
      (count(*) filter (where created_by = ${createdBy}))::integer as "ofAuthor"
    from change_requests
    where project_id = ${projectId} and status in ('open', 'approved', 'stale')`;
  return row;
}

/** Finds a request that a refused write has made already. */
export async function findByWrite(
  tx: Transaction,
  written: Pick<ChangeRequest, "projectId" | "createdBy" | "draftSha256">,
): Promise<ChangeRequest | undefined> {
  const { projectId, createdBy, draftSha256 } = written;
  const [row] = await tx<ChangeRequest[]>`
    select ${columns} from ${tables}
    where request.project_id = ${projectId} and request.created_by = ${createdBy}
      and request.draft_sha256 = ${draftSha256}
      and request.status in ('draft', 'open', 'approved', 'stale')
    order by request.status = 'stale'
    limit 1
    for update of request`;
  return row && fromRow(row);
}

/** Inserts a request. Returns false if a concurrent write has made the same one. */
export async function insertRequest(tx: Transaction, request: ChangeRequest): Promise<boolean> {
  const inserted = await tx`
    insert into change_requests (id, project_id, organization_id, title, reason, status, changes,
      base, content_hash, environment_ids, approvals, apply_at, created_by, created_at, version,
      updated_at, contributors, draft_sha256)
    values (${request.id}, ${request.projectId}, ${request.organizationId}, ${request.title},
      ${request.reason}, ${request.status}, ${json(request.changes)}, ${json(request.base)},
      ${request.contentHash}, ${request.environmentIds as string[]}::uuid[],
      ${json(request.approvals)}, ${request.applyAt}, ${request.createdBy}, ${request.createdAt},
      ${request.version}, ${request.updatedAt}, ${request.contributors as string[]}::uuid[], ${request.draftSha256})
    on conflict do nothing`;
  return inserted.count > 0;
}

/** Writes a locked request. */
export async function updateRequest(tx: Transaction, request: ChangeRequest): Promise<void> {
  await tx`
    update change_requests
    set title = ${request.title}, reason = ${request.reason}, status = ${request.status},
      changes = ${json(request.changes)}, base = ${json(request.base)},
      content_hash = ${request.contentHash},
      environment_ids = ${request.environmentIds as string[]}::uuid[],
      approvals = ${json(request.approvals)}, apply_at = ${request.applyAt},
      version = ${request.version}, updated_at = ${request.updatedAt},
      contributors = ${request.contributors as string[]}::uuid[],
      draft_sha256 = ${request.draftSha256}, applied_at = ${request.appliedAt},
      cause_id = ${request.causeId},
      applied_entries = ${request.appliedEntries as string[]}::uuid[],
      closed_by = ${request.closedBy}, comment = ${request.comment},
      bypass_reason = ${request.bypassReason}
    where id = ${request.id}`;
}

/** Removes the oldest drafts of an author beyond a number. */
export async function removeOldestDrafts(
  tx: Transaction,
  { projectId, createdBy }: Pick<ChangeRequest, "projectId" | "createdBy">,
  kept: number,
): Promise<void> {
  await tx`
    delete from change_requests where id = any(array(
      select id from change_requests
      where project_id = ${projectId} and created_by = ${createdBy} and status = 'draft'
      order by id desc
      offset ${kept}
    ))`;
}

/** Removes drafts that are older than a number of days. Returns their number. */
export async function removeOldDrafts(sql: Sql, days: number, atMost: number): Promise<number> {
  const removed = await sql`
    delete from change_requests where id = any(array(
      select id from change_requests
      where status = 'draft' and updated_at < clock_timestamp() - ${days} * interval '1 day'
      limit ${atMost}
    ))`;
  return removed.count;
}

/** Removes requests that ended longer ago than a number of days. Returns their number. */
export async function removeEndedRequests(sql: Sql, days: number, atMost: number): Promise<number> {
  const removed = await sql`
    delete from change_requests where id = any(array(
      select id from change_requests
      where status in ('applied', 'rejected', 'withdrawn')
        and updated_at < clock_timestamp() - ${days} * interval '1 day'
      limit ${atMost}
    ))`;
  return removed.count;
}

/** Removes requests of deleted projects, which row-level security hides. Returns whether any may be left. */
export async function removeRequestsOfDeleted(tx: Transaction, atMost: number): Promise<boolean> {
  const removed = await tx`
    delete from change_requests where id = any(array(
      select id from change_requests as request
      where not exists (select from projects where projects.id = request.project_id)
      limit ${atMost}
    ))`;
  return removed.count > 0;
}

/** Returns the ids of approved requests whose time has come, earliest first. */
export async function findDue(sql: Sql, now: Date, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select request.id from ${tables}
    where request.status = 'approved' and request.apply_at <= ${now}
    order by request.apply_at
    limit ${limit}`;
  return rows.map(({ id }) => id);
}

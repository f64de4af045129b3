import type { OrganizationChange } from "@halyard/contracts";
import { type Fragment, fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import { afterEverySequence, maxPageBytes } from "../access/page-bounds.ts";
import type { Write } from "../outbox/write.ts";
import type { AuditEntry, StoredAuditEntry } from "./audit-log.ts";

/** The entries of transactions that are not committed yet. */
const recorded = new WeakMap<Transaction, AuditEntry[]>();

/**
 * Writes the audit entries of a change, last in its transaction. Entries are in the order of the commits: the sequence
 * of an entry is drawn under a lock of the organization, which the transaction holds until it has committed. All entries
 * of a transaction are one statement, because other changes of the organization wait for it.
 */
export function recordAudit(write: Write, entries: readonly AuditEntry[]): void {
  if (entries.length === 0) return;
  const earlier = recorded.get(write.tx);
  if (earlier !== undefined) {
    earlier.push(...entries);
    return;
  }
  const all = [...entries];
  recorded.set(write.tx, all);
  write.beforeCommit(() => insertAuditEntries(write.tx, all));
}

/** Inserts entries of one organization. Skips an entry whose id exists. Call it last before the commit. */
export const insertAuditEntries = (tx: Transaction, entries: readonly AuditEntry[]) => tx`
  with entry as materialized (
    select * from jsonb_to_recordset(${json(entries)}) as entry (
      id uuid, "projectId" uuid, "organizationId" uuid, "environmentId" uuid, "flagId" uuid,
      "flagKey" text, "keyId" text, "webhookId" uuid, "userId" uuid, "audienceKey" text, action text, cause text,
      "causeId" uuid,
      actor jsonb, "apiKeyId" text, via text, before jsonb, after jsonb, "changedAt" timestamptz)
  ), serialized as materialized (
    -- The join below makes rows, and so draws their sequences, only when this has the lock.
    select count(pg_advisory_xact_lock(${auditLock}, hashtext(organization_id::text)))
    from (
      select coalesce("organizationId", organization_of_project("projectId")) as organization_id
      from entry
      limit 1
    ) as organization
  )
  insert into changes (id, project_id, organization_id, environment_id, flag_id, flag_key, key_id,
    webhook_id, user_id, audience_key, action, cause, cause_id, actor_id, actor_email, api_key_id, via,
    state_before, state_after, changed_at)
  select id, "projectId", "organizationId", "environmentId", "flagId", "flagKey", "keyId",
    "webhookId", "userId", "audienceKey", action, cause, "causeId", (actor ->> 'id')::uuid, actor ->> 'email', "apiKeyId",
    via, before, after, "changedAt"
  from serialized cross join entry
  on conflict (id) do nothing`;

/** The class of the advisory locks of audit logs, beside the hash of an organization. */
const auditLock = 1_635_083_369;

export const entryColumns = fragment`
  id, action, cause, cause_id as "causeId", flag_id as "flagId", flag_key as "flagKey", key_id as "keyId",
  webhook_id as "webhookId", user_id as "userId", audience_key as "audienceKey",
  environment_id as "environmentId",
  jsonb_build_object('id', actor_id, 'email', actor_email) as actor,
  api_key_id as "apiKeyId", via,
  state_before as before, state_after as after, changed_at as "changedAt"`;

/** The audit log of a project. It includes changes to users of the organization. */
export type AuditLog = { projectId: string; organizationId: string };

/**
 * Selects changes of users, which all projects of the organization show. Other entries of an organization, such as
 * sign-ins, are in its own audit log only. The migration of their index has the same condition.
 */
export const changesUsers = fragment`action in ('user_created', 'user_changed', 'user_deleted')`;

/** Returns the sequence of an entry, or undefined if the project's audit log does not contain the entry. */
export function findAuditSequence(
  sql: Sql,
  log: AuditLog,
  changeId: string,
): Promise<number | undefined> {
  const isOfUsers = fragment`(organization_id = ${log.organizationId} and ${changesUsers})`;
  return findSequence(sql, changeId, fragment`project_id = ${log.projectId} or ${isOfUsers}`);
}

/** Returns the sequence of an entry, or undefined if the organization's audit log does not contain the entry. */
export function findOrganizationSequence(
  sql: Sql,
  organizationId: string,
  changeId: string,
): Promise<number | undefined> {
  return findSequence(sql, changeId, fragment`organization_id = ${organizationId}`);
}

async function findSequence(
  sql: Sql,
  changeId: string,
  isOfLog: Fragment,
): Promise<number | undefined> {
  const [found] = await sql<{ sequence: number }[]>`
    select sequence from changes where id = ${changeId} and (${isOfLog})`;
  return found?.sequence;
}

/** The entries to list. All given members must match. */
type AuditFilter = {
  actorId?: string | undefined;
  action?: string | undefined;
  /** The earliest time of a change. */
  since?: Date | undefined;
  /** The time before which a change was made. */
  until?: Date | undefined;
};

/** A page before a sequence; the newest entries if it is null. */
type PageBefore = { beforeSequence: number | null; limit: number };

/** A page of audit entries, newest first, and whether there are older ones. */
type AuditPage<Entry> = { changes: Entry[]; more: boolean };

/**
 * Returns a page of a project's audit log. A page that is limited to a flag or an environment contains no changes of
 * users.
 */
export function listChanges(
  sql: Sql,
  which: AuditLog &
    AuditFilter & { flagId?: string | undefined; environmentId?: string | undefined },
  page: PageBefore,
): Promise<AuditPage<StoredAuditEntry>> {
  const { flagId, environmentId } = which;
  const ofFlag = flagId === undefined ? fragment`` : fragment`and change.flag_id = ${flagId}`;
  const ofEnvironment =
    environmentId === undefined
      ? fragment``
      : fragment`and change.environment_id = ${environmentId}`;
  const upToPage = matching(which, page);
  // Each branch reads its own index in order. A single condition with `or` would need a sort.
  const ofUsers =
    flagId === undefined && environmentId === undefined
      ? fragment`
        union all (
          select * from changes as change
          where change.organization_id = ${which.organizationId} and change.${changesUsers}
            ${upToPage}
        )`
      : fragment``;
  const branches = fragment`
    (
      select * from changes as change
      where change.project_id = ${which.projectId} ${ofFlag} ${ofEnvironment} ${upToPage}
    )
    ${ofUsers}`;
  return readAuditPage(sql, branches, page);
}

/** Returns a page of an organization's own audit log. */
export function listOrganizationChanges(
  sql: Sql,
  which: { organizationId: string } & AuditFilter,
  page: PageBefore,
): Promise<AuditPage<StoredAuditEntry<OrganizationChange["action"]>>> {
  const entries = fragment`
    select * from changes as change
    where change.organization_id = ${which.organizationId} ${matching(which, page)}`;
  return readAuditPage(sql, entries, page);
}

function matching(
  { actorId, action, since, until }: AuditFilter,
  { beforeSequence, limit }: PageBefore,
): Fragment {
  return fragment`
    ${actorId === undefined ? fragment`` : fragment`and change.actor_id = ${actorId}`}
    ${action === undefined ? fragment`` : fragment`and change.action = ${action}`}
    ${since === undefined ? fragment`` : fragment`and change.changed_at >= ${since}`}
    ${until === undefined ? fragment`` : fragment`and change.changed_at < ${until}`}
    and change.sequence < coalesce(${beforeSequence}::bigint, ${afterEverySequence}::bigint)
    order by change.sequence desc
    limit ${limit + 1}`;
}

/** Reads a page from the union of ordered branches. It ends early at `maxPageBytes`. */
async function readAuditPage<Action>(
  sql: Sql,
  branches: Fragment,
  { limit }: PageBefore,
): Promise<AuditPage<StoredAuditEntry<Action>>> {
  const rows = await sql<(StoredAuditEntry<Action> & { available: number })[]>`
    select ${entryColumns}, available
    from (
      select found.*, count(*) over () as available,
        sum(
          coalesce(octet_length(found.state_before::text), 0)
            + coalesce(octet_length(found.state_after::text), 0)
        ) over (
          order by found.sequence desc
          rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from (
        select *
        from (
          ${branches}
        ) as either
        order by sequence desc
        limit ${limit + 1}
      ) as found
    ) as measured
    where coalesce(bytes_before, 0) < ${maxPageBytes}
    order by sequence desc`;
  const changes = rows.slice(0, limit).map(({ available: _, ...change }) => change);
  return { changes, more: (rows[0]?.available ?? 0) > changes.length };
}

/** Returns the organization of a project, including deleted projects, or null if the project never existed. */
export async function findOrganizationOf(sql: Sql, projectId: string): Promise<string | null> {
  const [row] = await sql<[{ id: string | null }]>`
    select organization_of_project(${projectId}) as id`;
  return row.id;
}

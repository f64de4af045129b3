import type { Sql } from "@halyard/postgres";
import type { ChainScope, Link, ScopeNames } from "./chain.ts";

/**
 * Lowest UUID, the start of every reading. Verification reads the history in pages, each a separate statement. The
 * result is as good as that of one database snapshot, because entries are only appended to their chains. No transaction
 * stays open in a production database.
 */
export const nilId = "00000000-0000-0000-0000-000000000000";

/**
 * Maximum number of entries per page. The database computes the hashes, so that no rules are transferred. Even a page
 * of the largest rules takes far less than the statement timeout.
 */
const linksPerPage = 500;

/**
 * Reads all links, chain by chain, oldest first. The statement computes the hashes and does not call the function that
 * created them, so a replaced function is detected. The look-ups of flags and deletions do not use `exists`, because
 * PostgreSQL might then read all of them for every page.
 */
export async function* readLinks(sql: Sql): AsyncGenerator<Link[]> {
  let last: Pick<Link, "flagId" | "environmentId" | "sequence"> = {
    flagId: nilId,
    environmentId: nilId,
    sequence: Number.MIN_SAFE_INTEGER,
  };
  for (;;) {
    const links: Link[] = await sql<Link[]>`
      select entry.id, entry.flag_id as "flagId", entry.environment_id as "environmentId",
        entry.sequence, entry.changed_at as "changedAt",
        encode(entry.previous_hash, 'hex') as "previousHash", encode(entry.hash, 'hex') as hash,
        entry.hash = pg_catalog.sha256(
          entry.previous_hash || convert_to(
            jsonb_build_object(
              'id', entry.id,
              'flag_id', entry.flag_id,
              'environment_id', entry.environment_id,
              'sequence', entry.sequence,
              'enabled', entry.enabled,
              'rollout_percentage', entry.rollout_percentage,
              'targeting_rules', entry.targeting_rules,
              'change_type', entry.change_type,
              'changed_by', entry.changed_by,
              'changed_at', extract(epoch from entry.changed_at)
            )::text,
            'UTF8'
          )
        ) as intact,
        coalesce(encode(removed.hash, 'hex'), '') as "removedHash",
        coalesce(removed.entries, 0) as "removedEntries",
        case
          when entry.previous_hash <> coalesce(removed.hash, '') then true
          else coalesce(
            (select true from flags as flag where flag.id = entry.flag_id),
            (
              select true from changes as deletion
              where deletion.flag_id = entry.flag_id
                and deletion.environment_id = entry.environment_id and deletion.action = 'deleted'
              limit 1
            ),
            (
              select true from ended_history as ended
              where ended.flag_id = entry.flag_id and ended.environment_id = entry.environment_id
            ),
            false
          )
        end as "isOfKnownFlag"
      from history as entry
      left join removed_history as removed
        on removed.flag_id = entry.flag_id and removed.environment_id = entry.environment_id
      where (entry.flag_id, entry.environment_id, entry.sequence)
        > (${last.flagId}::uuid, ${last.environmentId}::uuid, ${last.sequence}::bigint)
      order by entry.flag_id, entry.environment_id, entry.sequence
      limit ${linksPerPage}`;
    const end = links.at(-1);
    if (end === undefined) return;
    yield links;
    last = end;
  }
}

/**
 * Reads the names of the flag, environment and project of a chain. The key of a deleted flag comes from the audit log.
 */
export async function readNames(sql: Sql, scope: ChainScope): Promise<ScopeNames> {
  const [names] = await sql<[ScopeNames]>`
    select environment.name as environment, project.name as project,
      coalesce(
        (select flag.key from flags as flag where flag.id = ${scope.flagId}),
        (
          select change.flag_key from changes as change
          where change.project_id = project.id and change.flag_id = ${scope.flagId}
          order by change.sequence desc
          limit 1
        )
      ) as "flagKey"
    from (select ${scope.environmentId}::uuid as id) as place
    left join environments as environment on environment.id = place.id
    left join projects as project on project.id = environment.project_id`;
  return names;
}

/** Returns true if retention may have removed a missing chain: it has no state, and its head is old enough. */
export async function wasRemoved(
  sql: Sql,
  { flagId, environmentId, changedAt }: ChainScope & { changedAt: Date },
): Promise<boolean> {
  const [row] = await sql<[{ removed: boolean }]>`
    select ${changedAt} < removed_before
      and not exists (
        select from flag_states
        where flag_id = ${flagId} and environment_id = ${environmentId}
      ) as removed
    from audit_retention`;
  return row.removed;
}

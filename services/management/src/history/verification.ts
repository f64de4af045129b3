import { fragment, json, type Sql } from "@halyard/postgres";

/**
 * Verification of the history. Each entry contains a hash of its own content and of the previous entry of the same flag
 * and environment, so the entries of a state are a chain. All names are qualified with the schema, because only the role of the
 * service has it in its search path.
 */

/** An entry that breaks its chain, or the former newest entry of a chain that does not contain it any more. */
type Break = {
  flagId: string;
  environmentId: string;
  entryId: string;
  changedAt: string;
  problem: "changed" | "unlinked" | "missing";
};

/** The newest entry of a chain at some time. A head that is kept outside the database reveals a rewritten chain. */
export type Head = {
  flag_id: string;
  environment_id: string;
  entry_id: string;
  changed_at: string;
  hash: string;
};

/** Maximum number of breaks that are returned. The others are only counted. */
export const maxShown = 50;

/**
 * Retention removed entries up to this time. It never removes the last 30 days, whatever the table says. If the row was
 * removed, this is null and no entry is that old.
 */
const removedBefore = fragment`(
  select least(retention.removed_before, now() - interval '30 days')
  from management.audit_retention as retention
)`;

/**
 * Recomputes the hash of each entry, and compares the hash that it names with its predecessor's. The oldest entry names
 * none, unless retention may have removed its predecessor. Version 1 of the hash has the members of the state beside the
 * columns. The statement does not call the function that created the hashes, so a replaced function is detected. It reads
 * one database snapshot in the order of an index, so concurrent changes do not matter, and memory does not grow with the
 * history.
 */
export async function findBreaks(
  sql: Sql,
): Promise<{ entries: number; breaks: number; first: Break[] }> {
  const [found] = await sql<[{ entries: number; breaks: number; first: Break[] }]>`
    with link as (
      select entry.*,
        lag(entry.hash) over chain as hash_before,
        pg_catalog.sha256(
          entry.previous_hash || convert_to(
            (
              case entry.hash_version
                when 1 then entry.content
                else jsonb_build_object(
                  'hash_version', entry.hash_version, 'content', entry.content
                )
              end || jsonb_build_object(
                'id', entry.id,
                'flag_id', entry.flag_id,
                'environment_id', entry.environment_id,
                'sequence', entry.sequence,
                'change_type', entry.change_type,
                'changed_by', entry.changed_by,
                'changed_at', extract(epoch from entry.changed_at)
              )
            )::text,
            'UTF8'
          )
        ) as recomputed_hash
      from management.history as entry
      window chain as (partition by entry.flag_id, entry.environment_id order by entry.sequence)
    ), verdict as (
      select link.id, link.flag_id, link.environment_id, link.sequence, link.changed_at,
        case
          when link.hash is distinct from link.recomputed_hash then 'changed'
          when link.previous_hash is not distinct from coalesce(link.hash_before, '') then null
          when link.hash_before is null and link.changed_at <= ${removedBefore} then null
          else 'unlinked'
        end as problem
      from link
    ), numbered as (
      select verdict.*,
        count(verdict.problem) over (
          order by verdict.flag_id, verdict.environment_id, verdict.sequence
        ) as number
      from verdict
    )
    select count(*) as entries, count(numbered.problem) as breaks,
      coalesce(
        jsonb_agg(
          jsonb_build_object('flagId', numbered.flag_id, 'environmentId', numbered.environment_id,
            'entryId', numbered.id, 'changedAt', numbered.changed_at, 'problem', numbered.problem)
          order by numbered.flag_id, numbered.environment_id, numbered.sequence
        ) filter (where numbered.problem is not null and numbered.number <= ${maxShown}),
        '[]'
      ) as first
    from numbered`;
  return found;
}

/** Returns the newest entry of each chain. */
export function readHeads(sql: Sql): Promise<Head[]> {
  return sql<Head[]>`
    select distinct on (entry.flag_id, entry.environment_id)
      entry.flag_id, entry.environment_id, entry.id as entry_id,
      to_jsonb(entry.changed_at) #>> '{}' as changed_at, encode(entry.hash, 'hex') as hash
    from management.history as entry
    order by entry.flag_id, entry.environment_id, entry.sequence desc`;
}

/**
 * Returns the earlier heads that are no longer in their chains. A head may be missing if the flag or its environment was
 * deleted, or if retention may have removed the entry.
 */
export function findMissingHeads(sql: Sql, heads: readonly Head[]): Promise<Break[]> {
  return sql<Break[]>`
    select head.flag_id as "flagId", head.environment_id as "environmentId",
      head.entry_id as "entryId", to_jsonb(head.changed_at) #>> '{}' as "changedAt",
      'missing' as problem
    from json_to_recordset(${json(heads)}::json) as head (
      flag_id uuid, environment_id uuid, entry_id uuid, changed_at timestamptz, hash text
    )
    join management.flag_states as state
      on state.flag_id = head.flag_id and state.environment_id = head.environment_id
    left join management.history as entry
      on entry.id = head.entry_id and entry.flag_id = head.flag_id
        and entry.environment_id = head.environment_id
        and encode(entry.hash, 'hex') = head.hash
    where entry.id is null and (head.changed_at <= ${removedBefore}) is not true
    order by head.flag_id, head.environment_id`;
}

const problems = {
  changed: "its content does not match its hash",
  unlinked: "it does not follow the entry before it: an entry was removed, added or moved",
  missing: "it was the newest one in the file of heads, and was removed or changed",
} as const;

/** Returns a message about a break, with the names of the flag and the environment if they exist. */
export async function describeBreak(sql: Sql, found: Break): Promise<string> {
  const { flagId, environmentId, entryId, changedAt, problem } = found;
  const [names] = await sql<[{ flag: string; environment: string }]>`
    select
      coalesce((select flag.key from management.flags as flag where flag.id = ${flagId}), '?') as flag,
      coalesce((
        select environment.name from management.environments as environment
        where environment.id = ${environmentId}
      ), '?') as environment`;
  const place = `Flag ${names.flag} (${flagId}), environment ${names.environment} (${environmentId})`;
  return `${place}, entry ${entryId} of ${changedAt}: ${problems[problem]}.`;
}

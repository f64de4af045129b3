import { type EvaluationsReported, maxReaders, type Reader } from "@halyard/contracts";
import { json, type Sql, type Transaction } from "@halyard/postgres";
import { reportSeenAt } from "./decide-sums.ts";

/** A row of a reader, with the time of its last report. */
type ReaderRow = Reader & { environment_id: string; last_seen_at: string };

/**
 * Age after which the row of a reader is updated. Hundreds of processes of an application report each minute, and a row
 * of the same age says the same.
 */
const updateAfterMinutes = 5;

/** Returns a row for each reader that reported, with its last report. */
export function readersOf(reports: readonly EvaluationsReported[], nowMs: number): ReaderRow[] {
  const rows = new Map<string, ReaderRow>();
  for (const { reader, ...report } of reports) {
    if (reader === undefined) continue;
    const { name, version, knows } = reader;
    const environment_id = report.environment_id.toLowerCase();
    const last_seen_at = reportSeenAt(report, nowMs);
    const id = [environment_id, name, version].join(" ");
    const known = rows.get(id);
    if (known === undefined || known.last_seen_at < last_seen_at)
      rows.set(id, { environment_id, name, version, knows, last_seen_at });
  }
  return [...rows.values()];
}

/** Writes the readers whose row is absent or old, and removes the oldest ones of environments with too many. */
export async function recordReaders(
  tx: Sql | Transaction,
  readers: readonly ReaderRow[],
): Promise<void> {
  const written = await tx<{ environmentId: string }[]>`
    insert into readers as known (environment_id, name, version, knows, last_seen_at)
    select environment_id, name, version, knows, last_seen_at
    from jsonb_to_recordset(${json(readers)}) as given (
      environment_id uuid, name text, version text, knows text[], last_seen_at timestamptz)
    -- A row that is not due is not locked.
    where not exists (
      select from readers
      where (readers.environment_id, readers.name, readers.version)
          = (given.environment_id, given.name, given.version)
        and readers.last_seen_at > given.last_seen_at - ${updateAfterMinutes} * interval '1 minute'
    )
    order by environment_id, name, version
    on conflict (environment_id, name, version) do update
      set knows = excluded.knows, last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at)
    returning environment_id as "environmentId"`;
  if (written.length > 0)
    await removeOldest(tx, [...new Set(written.map(({ environmentId }) => environmentId))]);
}

/** A row that another transaction writes is skipped, so that transactions never deadlock. */
const removeOldest = (tx: Sql | Transaction, environmentIds: readonly string[]) => tx`
  delete from readers
  where ctid = any(array(
    select ctid from readers
    where (environment_id, name, version) in (
      select environment_id, name, version
      from (
        select environment_id, name, version, row_number() over (
          partition by environment_id order by last_seen_at desc, name, version
        ) as place
        from readers
        where environment_id = any(${environmentIds as string[]}::uuid[])
      ) as placed
      where place > ${maxReaders}
    )
    for update skip locked
  ))`;

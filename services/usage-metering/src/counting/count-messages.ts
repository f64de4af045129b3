import { type QuotaEntry, type UsageRecorded, usageMessageId } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { type Sums, sumUp } from "./decide-sums.ts";
import { upsertRows } from "./sum-tables.ts";

export type Counted = {
  /** The messages that had not been counted before. */
  counted: readonly UsageRecorded[];
  sums: Sums;
  /** The new totals of the months that changed. */
  months: readonly QuotaEntry[];
  /** The database's time. */
  now: Date;
};

/**
 * Counts messages in one transaction. Counted sequences and sums are committed together, so a message that is
 * delivered again adds nothing.
 */
export async function countMessages(
  sql: Sql,
  messages: readonly UsageRecorded[],
): Promise<Counted> {
  // A repeated message counts once.
  const byId = new Map(messages.map((message) => [idOf(message), message]));
  return sql.begin(async (tx) => {
    const { uncounted, now } = await takeUncounted(tx, [...byId.values()]);
    const counted = uncounted.flatMap((id) => byId.get(usageMessageId(id)) ?? []);
    const sums = sumUp(counted, now.getTime());
    if (counted.length === 0) return { counted, sums, months: [], now };
    // The statements are pipelined: one round trip.
    const [months] = await Promise.all([
      ...[...sums.rows].map(([table, rows]) =>
        rows.length > 0 ? upsertRows(tx, table, rows) : [],
      ),
      markCounted(tx, uncounted),
    ]);
    return { counted, sums, months: months as unknown as QuotaEntry[], now };
  });
}

type MessageId = { edge: string; sequence: number };

/** Returns the id of a message with the edge's id as PostgreSQL writes it. */
function idOf({ edge, sequence }: UsageRecorded): string {
  return usageMessageId({ edge: edge.toLowerCase(), sequence });
}

/** Locks the edges until the end of the transaction, and returns the messages that have not been counted. */
async function takeUncounted(
  tx: Transaction,
  messages: readonly MessageId[],
): Promise<{ uncounted: readonly MessageId[]; now: Date }> {
  const rows = await tx<(MessageId & { counted: boolean; now: Date })[]>`
    with given as (
      select edge, sequence
      from unnest(${messages.map(({ edge }) => edge)}::uuid[],
        ${messages.map(({ sequence }) => sequence)}::bigint[]) as given (edge, sequence)
    ), locked as (
      insert into edges (edge, counted, last_counted_at)
      select edge, '{}', present_time() from (select distinct edge from given) as named
      order by edge
      on conflict (edge) do update set last_counted_at = excluded.last_counted_at
      returning edge, counted
    )
    select given.edge, given.sequence, locked.counted @> given.sequence as counted,
      clock.now
    from given
    join locked using (edge)
    cross join (select present_time() as now) as clock`;
  const now = rows[0]?.now ?? new Date(0);
  return { uncounted: rows.filter(({ counted }) => !counted), now };
}

export const markCounted = (tx: Sql | Transaction, messages: readonly MessageId[]) => tx`
  update edges set counted = edges.counted + added.sequences
  from (
    select edge, range_agg(int8range(sequence, sequence, '[]')) as sequences
    from unnest(${messages.map(({ edge }) => edge)}::uuid[],
      ${messages.map(({ sequence }) => sequence)}::bigint[]) as given (edge, sequence)
    group by edge
  ) as added
  where edges.edge = added.edge`;

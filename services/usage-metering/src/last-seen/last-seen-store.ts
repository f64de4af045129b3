import type { UsageLastSeen } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";
import { parameterType, type SumTable, statementOf, sumTables } from "../counting/sum-tables.ts";

/** The kind of a row that management has not received: its first use, or a later one. */
export type UnsentKind = "first" | "later";

/** Returns true if this transaction has the lock for sending, which it holds until its end. */
export async function lockSending(tx: Transaction): Promise<boolean> {
  const [row] = await tx<[{ alone: boolean }]>`
    select pg_try_advisory_xact_lock(hashtextextended('usage.last_seen', 0)) as alone`;
  return row.alone;
}

const keys = statementsFor(sumTables.keysSeen);
const environments = statementsFor(sumTables.environmentsSeen);
const flags = statementsFor(sumTables.flagsSeen);

/** Returns unsent rows of these kinds, up to a maximum from each table. */
export async function readUnsent(
  tx: Transaction,
  { kinds, atMost }: { kinds: readonly UnsentKind[]; atMost: number },
): Promise<UsageLastSeen> {
  return {
    keys: (await keys.read(tx, kinds, atMost)) as UsageLastSeen["keys"],
    environments: (await environments.read(tx, kinds, atMost)) as UsageLastSeen["environments"],
    flags: (await flags.read(tx, kinds, atMost)) as UsageLastSeen["flags"],
  };
}

/**
 * Marks rows as sent. A row that has a later time by now stays unsent. So does a row that is being written, because
 * counting must never wait for the sender.
 */
export async function markSent(tx: Transaction, sent: UsageLastSeen): Promise<void> {
  await keys.mark(tx, sent.keys);
  await environments.mark(tx, sent.environments);
  await flags.mark(tx, sent.flags);
}

type Row = Record<string, string>;

function statementsFor({ name, key, value }: SumTable) {
  const keyColumns = Object.keys(key);
  const columns = [...keyColumns, value];
  const read = statementOf(`
    select ${keyColumns.join()}, ${value} from ${name}
    where news <> 'none' and news = any(?::text[])
    limit ?`);
  const parameters = columns.map((column) => `?::${parameterType(key[column]) ?? "text"}[]`);
  const mark = statementOf(`
    update ${name} as known
    set news = case when known.${value} = sent.at::timestamptz then 'none' else 'later' end
    from (
      select ${keyColumns.join()}, given.at from ${name}
      join unnest(${parameters.join()}) as given (${keyColumns.join()}, at)
        using (${keyColumns.join()})
      for update of ${name} skip locked
    ) as sent
    where ${keyColumns.map((column) => `known.${column} = sent.${column}`).join(" and ")}`);
  return {
    async read(tx: Transaction, kinds: readonly UnsentKind[], atMost: number): Promise<Row[]> {
      const rows = await tx<Record<string, Date>[]>(read, kinds as string[], atMost);
      return rows.map((row) => ({ ...row, [value]: row[value]?.toISOString() }) as unknown as Row);
    },
    mark: (tx: Transaction, rows: readonly Row[]) =>
      tx(mark, ...columns.map((column) => rows.map((row) => row[column] ?? ""))),
  };
}

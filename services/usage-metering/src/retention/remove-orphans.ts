import type { Sql, Transaction } from "@halyard/postgres";
import { parameterType, type SumTable, statementOf, sumTables } from "../counting/sum-tables.ts";
import type { FlagScope } from "../directory/directory.ts";

export type Existing = {
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  isSettled(): Promise<boolean>;
  flagExists(scope: FlagScope): boolean;
  keyExists(keyId: string): boolean;
};

const unseenDays = 31;
const pageSize = 1_000;
const nilId = "00000000-0000-0000-0000-000000000000";
/** Values that sort before all others. */
const lowest = { uuid: nilId, text: "" };

type Row = Readonly<Record<string, string>>;
type Options = { existing: Existing; mayContinue: () => boolean };

/**
 * Removes the rows about the last use of deleted flags and keys. Only old rows are checked, so that a late entry of the
 * snapshot does not cause a removal. One replica at a time reads the tables, in pages by primary key. A replica that
 * finds the lock taken stops entirely. If it continued with the next table, its lock there could stop the other
 * replica, and neither would finish. Rows are locked in the same order as in counting. A row that is being written is
 * skipped, because it has just been used.
 */
export async function removeOrphans(sql: Sql, options: Options): Promise<void> {
  const { flagExists, keyExists } = options.existing;
  const flagIsGone = ({ flag_id: flagId = "", environment_id: environmentId = "" }: Row) =>
    !flagExists({ flagId, environmentId });
  const keyIsGone = ({ key_id: keyId = "" }: Row) => !keyExists(keyId);
  if (await walk(sql, options, pagesOf(sumTables.flagsSeen, flagIsGone)))
    await walk(sql, options, pagesOf(sumTables.keysSeen, keyIsGone));
}

/** Removes the orphans in the page after a row. Returns the last row of the page; undefined if it was the last page. */
type RemovePage = (tx: Transaction, after: Row | undefined) => Promise<Row | undefined>;

/** Removes orphans page by page. Returns false if another replica has the lock, or this one has to stop. */
async function walk(
  sql: Sql,
  { existing, mayContinue }: Options,
  removePage: RemovePage,
): Promise<boolean> {
  let after: Row | undefined;
  while (mayContinue() && (await existing.isSettled())) {
    const last = await sql.begin(async (tx) =>
      (await mayRemove(tx)) ? { row: await removePage(tx, after) } : undefined,
    );
    if (last === undefined) return false;
    if (last.row === undefined) return true;
    after = last.row;
  }
  return false;
}

/** Returns whether this transaction has the lock for removing orphans. */
async function mayRemove(tx: Transaction): Promise<boolean> {
  const [row] = await tx<[{ alone: boolean }]>`
    select pg_try_advisory_xact_lock(hashtextextended('usage.forget_gone', 0)) as alone`;
  return row.alone;
}

function pagesOf({ name, key, value }: SumTable, isGone: (row: Row) => boolean): RemovePage {
  const columns = Object.keys(key);
  const names = columns.join();
  const types = Object.values(key).map((type) => parameterType(type) as keyof typeof lowest);
  const isOld = `${value} < present_time() - ${unseenDays} * interval '1 day'`;
  const read = statementOf(`
    select ${names} from ${name}
    where (${names}) > (${types.map((type) => `?::${type}`).join()}) and ${isOld}
    order by ${names}
    limit ${pageSize}`);
  const remove = statementOf(`
    delete from ${name}
    where ctid = any(array(
      select ${name}.ctid from ${name}
      join unnest(${types.map((type) => `?::${type}[]`).join()}) as given (${names}) using (${names})
      where ${isOld}
      order by ${names}
      for update of ${name} skip locked
    ))`);
  return async (tx, after) => {
    const start = columns.map((column, index) => after?.[column] ?? lowest[types[index] ?? "text"]);
    const page = await tx<Record<string, string>[]>(read, ...start);
    const gone = page.filter(isGone);
    if (gone.length > 0)
      await tx(remove, ...columns.map((column) => gone.map((row) => row[column] as string)));
    return page.length < pageSize ? undefined : page.at(-1);
  };
}

import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { FlagPlace } from "../directory/directory.ts";

/**
 * Forgets when flags and keys were last seen that do not exist any more. Only what has not been seen for a
 * while is looked at, so nothing is forgotten because its entry in the snapshot is late. The tables are
 * walked in pages, by their primary keys, by one replica at a time. A replica that finds the lock taken
 * stops altogether: if it went on with the next table, its lock there could stop the other replica in turn,
 * and neither would finish. Rows are locked in the order in which those who count lock them, and one that is being
 * written has been seen just now.
 */
export type Existing = {
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  isSettled(): Promise<boolean>;
  flagExists(place: FlagPlace): boolean;
  keyExists(keyId: string): boolean;
};

const unseenDays = 31;
const pageSize = 1_000;

type Options = { existing: Existing; mayGoOn: () => boolean };

export async function forgetGone(sql: Sql, options: Options): Promise<void> {
  if (await walk(sql, options, forgetFlagsAfter)) await walk(sql, options, forgetKeysAfter);
}

/** Forgets what is gone in the page after a row; answers the last row of the page, if there is more. */
type ForgetPage<Row> = (
  tx: Transaction,
  existing: Existing,
  after: Row | undefined,
) => Promise<Row | undefined>;

/** Returns false when another replica is at it, or this one has to stop. */
async function walk<Row>(
  sql: Sql,
  { existing, mayGoOn }: Options,
  forgetPage: ForgetPage<Row>,
): Promise<boolean> {
  let after: Row | undefined;
  while (mayGoOn() && (await existing.isSettled())) {
    const last = await sql.begin(async (tx) =>
      (await mayForget(tx)) ? { row: await forgetPage(tx, existing, after) } : undefined,
    );
    if (last === undefined) return false;
    if (last.row === undefined) return true;
    after = last.row;
  }
  return false;
}

/** Whether this transaction alone forgets now. */
async function mayForget(tx: Transaction): Promise<boolean> {
  const [row] = await tx<[{ alone: boolean }]>`
    select pg_try_advisory_xact_lock(hashtextextended('usage.forget_gone', 0)) as alone`;
  return row.alone;
}

const forgetFlagsAfter: ForgetPage<FlagPlace> = async (tx, existing, after) => {
  const page: FlagPlace[] = await tx<FlagPlace[]>`
    select flag_id as "flagId", environment_id as "environmentId" from flags_last_seen
    where evaluated_at < present_time() - ${unseenDays} * interval '1 day'
      ${after === undefined ? fragment`` : fragment`and (flag_id, environment_id) > (${after.flagId}, ${after.environmentId})`}
    order by flag_id, environment_id
    limit ${pageSize}`;
  const gone = page.filter((place) => !existing.flagExists(place));
  if (gone.length > 0)
    await tx`
      delete from flags_last_seen
      using (
        select flag_id, environment_id from flags_last_seen
        join unnest(${gone.map(({ flagId }) => flagId)}::uuid[],
          ${gone.map(({ environmentId }) => environmentId)}::uuid[])
          as given (flag_id, environment_id) using (flag_id, environment_id)
        where evaluated_at < present_time() - ${unseenDays} * interval '1 day'
        order by flag_id, environment_id
        for update of flags_last_seen skip locked
      ) as gone
      where flags_last_seen.flag_id = gone.flag_id
        and flags_last_seen.environment_id = gone.environment_id`;
  return page.length < pageSize ? undefined : page.at(-1);
};

const forgetKeysAfter: ForgetPage<string> = async (tx, existing, after = "") => {
  const page = await tx<{ keyId: string }[]>`
    select key_id as "keyId" from keys_last_seen
    where key_id > ${after} and used_at < present_time() - ${unseenDays} * interval '1 day'
    order by key_id
    limit ${pageSize}`;
  const gone = page.filter(({ keyId }) => !existing.keyExists(keyId));
  if (gone.length > 0)
    await tx`
      delete from keys_last_seen
      using (
        select key_id from keys_last_seen
        where key_id = any(${gone.map(({ keyId }) => keyId)}::text[])
          and used_at < present_time() - ${unseenDays} * interval '1 day'
        order by key_id
        for update skip locked
      ) as gone
      where keys_last_seen.key_id = gone.key_id`;
  return page.length < pageSize ? undefined : page.at(-1)?.keyId;
};

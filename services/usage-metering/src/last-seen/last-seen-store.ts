import type { UsageLastSeen } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";

/**
 * What management has still to be told, and that it was told. Rows that are being written at the moment
 * are left alone: they are news again in a moment, and nobody who counts waits for this.
 */
export type News = "first" | "later";

/** Whether this transaction alone tells now; until its end the other replicas leave it to it. */
export async function mayTell(tx: Transaction): Promise<boolean> {
  const [row] = await tx<[{ alone: boolean }]>`
    select pg_try_advisory_xact_lock(hashtextextended('usage.last_seen', 0)) as alone`;
  return row.alone;
}

/** News of these kinds, so many of each table at most. */
export async function readNews(
  tx: Transaction,
  { kinds, atMost }: { kinds: readonly News[]; atMost: number },
): Promise<UsageLastSeen> {
  const [keys, environments, flags] = await Promise.all([
    tx<{ key_id: string; used_at: Date }[]>`
      select key_id, used_at from keys_last_seen
      where news <> 'none' and news = any(${kinds as string[]}::text[])
      limit ${atMost}`,
    tx<{ environment_id: string; evaluated_at: Date }[]>`
      select environment_id, evaluated_at from environments_last_seen
      where news <> 'none' and news = any(${kinds as string[]}::text[])
      limit ${atMost}`,
    tx<{ environment_id: string; flag_id: string; evaluated_at: Date }[]>`
      select environment_id, flag_id, evaluated_at from flags_last_seen
      where news <> 'none' and news = any(${kinds as string[]}::text[])
      limit ${atMost}`,
  ]);
  const instant = (at: Date) => at.toISOString();
  return {
    keys: keys.map((row) => ({ ...row, used_at: instant(row.used_at) })),
    environments: environments.map((row) => ({ ...row, evaluated_at: instant(row.evaluated_at) })),
    flags: flags.map((row) => ({ ...row, evaluated_at: instant(row.evaluated_at) })),
  };
}

/** Marks what was told as such; what has advanced since it was read is to be told again, in its time. */
export async function markTold(
  tx: Transaction,
  { keys, environments, flags }: UsageLastSeen,
): Promise<void> {
  await tx`
    update keys_last_seen as known
    set news = case when known.used_at = told.at::timestamptz then 'none' else 'later' end
    from (
      select key_id, given.at from keys_last_seen
      join unnest(${keys.map(({ key_id }) => key_id)}::text[],
        ${keys.map(({ used_at }) => used_at)}::text[]) as given (key_id, at) using (key_id)
      for update of keys_last_seen skip locked
    ) as told
    where known.key_id = told.key_id`;
  await tx`
    update environments_last_seen as known
    set news = case when known.evaluated_at = told.at::timestamptz then 'none' else 'later' end
    from (
      select environment_id, given.at from environments_last_seen
      join unnest(${environments.map(({ environment_id }) => environment_id)}::uuid[],
        ${environments.map(({ evaluated_at }) => evaluated_at)}::text[])
        as given (environment_id, at) using (environment_id)
      for update of environments_last_seen skip locked
    ) as told
    where known.environment_id = told.environment_id`;
  await tx`
    update flags_last_seen as known
    set news = case when known.evaluated_at = told.at::timestamptz then 'none' else 'later' end
    from (
      select flag_id, environment_id, given.at from flags_last_seen
      join unnest(${flags.map(({ flag_id }) => flag_id)}::uuid[],
        ${flags.map(({ environment_id }) => environment_id)}::uuid[],
        ${flags.map(({ evaluated_at }) => evaluated_at)}::text[])
        as given (flag_id, environment_id, at) using (flag_id, environment_id)
      for update of flags_last_seen skip locked
    ) as told
    where known.flag_id = told.flag_id and known.environment_id = told.environment_id`;
}

import { maxReaders, type Reader, type Readers, readerRetentionDays } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { maxSum } from "../counting/sum-tables.ts";

/** The use of a month, for reports. Times are those of the database's clock. */
type MonthUsed = { start: Date; end: Date; used: number };

/** Returns the current month and the requests that an organization has used in it. */
export async function readMonth(sql: Sql, organizationId: string): Promise<MonthUsed> {
  const [month] = await sql<[MonthUsed]>`
    select present.start at time zone 'UTC' as start,
      (present.start + interval '1 month') at time zone 'UTC' as end,
      coalesce(month.requests, 0) as used
    from (select date_trunc('month', present_time() at time zone 'UTC') as start) as present
    left join organization_months as month
      on month.month = present.start::date and month.organization_id = ${organizationId}`;
  return month;
}

/** Returns a period in days, with defaults by the database's clock, and its number of days. */
export async function resolvePeriod(
  sql: Sql,
  { from, to }: { from: string | undefined; to: string | undefined },
): Promise<{ from: string; to: string; days: number }> {
  const [period] = await sql<[{ from: string; to: string; days: number }]>`
    select first::text as from, last::text as to, last - first + 1 as days
    from (select coalesce(${to ?? null}::text::date, (present_time() at time zone 'UTC')::date) as last)
      as ended,
      lateral (select coalesce(${from ?? null}::text::date, date_trunc('month', last)::date) as first)
      as began`;
  return period;
}

/** Returns the requests of an organization on each day of a period, oldest first. */
export async function readDays(
  sql: Sql,
  { organizationId, from, to }: { organizationId: string; from: string; to: string },
): Promise<{ date: string; requests: number }[]> {
  return sql<{ date: string; requests: number }[]>`
    with period as (select ${from}::text::date as first, ${to}::text::date as last),
    counted as (
      select (hour at time zone 'UTC')::date as day, requests
      from request_hours, period
      where organization_id = ${organizationId}
        and hour >= period.first::timestamp at time zone 'UTC'
        and hour < (period.last + 1)::timestamp at time zone 'UTC'
      union all
      select day, requests
      from request_days, period
      where organization_id = ${organizationId} and day between period.first and period.last
    ),
    sums as (
      select day, least(sum(requests), ${maxSum})::bigint as requests from counted group by day
    )
    select day::text as date, coalesce(sums.requests, 0) as requests
    from period, lateral (select first + number as day from generate_series(0, last - first) as number)
      as days
    left join sums using (day)
    order by day`;
}

/** Returns the first day with stored requests of an organization. */
export async function readFirstDay(sql: Sql, organizationId: string): Promise<string | null> {
  const [row] = await sql<[{ day: string | null }]>`
    select least(
      (select min(day) from request_days where organization_id = ${organizationId}),
      (select (min(hour) at time zone 'UTC')::date from request_hours
        where organization_id = ${organizationId})
    )::text as day`;
  return row.day;
}

export type StoredHour = {
  environmentId: string;
  hour: Date;
  /** "flag": evaluations of the flag alone; "bulk": bulk responses of the environment. */
  of: "flag" | "bulk";
  count: number;
};

/** Returns the stored hours of a flag and its environments, for a number of hours up to the current one. */
export async function readHours(
  sql: Sql,
  options: { flagId: string; environmentIds: readonly string[]; hours: number },
): Promise<StoredHour[]> {
  const { flagId, environmentIds, hours } = options;
  return sql<StoredHour[]>`
    with present as (select date_trunc('hour', present_time(), 'UTC') as hour),
    span as (select hour - ${hours - 1} * interval '1 hour' as first, hour as last from present)
    select environment_id as "environmentId", hour, 'flag' as of, evaluations as count
    from flag_hours, span
    where flag_id = ${flagId} and environment_id = any(${environmentIds as string[]}::uuid[])
      and hour between span.first and span.last
    union all
    select environment_id, hour, 'bulk', answers
    from bulk_answer_hours, span
    where environment_id = any(${environmentIds as string[]}::uuid[])
      and hour between span.first and span.last`;
}

type StoredVariation = { environmentId: string; key: string; evaluations: number };

/**
 * Returns the evaluations of a flag by environment and variation, for a number of hours up to the current one, most
 * first.
 */
export async function readVariations(
  sql: Sql,
  options: { flagId: string; environmentIds: readonly string[]; hours: number },
): Promise<StoredVariation[]> {
  const { flagId, environmentIds, hours } = options;
  return sql<StoredVariation[]>`
    with present as (select date_trunc('hour', present_time(), 'UTC') as hour)
    select environment_id as "environmentId", variation as key,
      least(sum(evaluations), ${maxSum})::bigint as evaluations
    from variation_hours, present
    where flag_id = ${flagId} and environment_id = any(${environmentIds as string[]}::uuid[])
      and variation_hours.hour
        between present.hour - ${hours - 1} * interval '1 hour' and present.hour
    group by environment_id, variation
    order by evaluations desc, variation collate "C"`;
}

type LastSeen = { environmentId: string; flag: Date | null; bulk: Date | null };

/** Returns the times of a flag's last evaluation in each environment: alone, and by a bulk response. */
export async function readLastSeen(
  sql: Sql,
  options: { flagId: string; environmentIds: readonly string[] },
): Promise<LastSeen[]> {
  return sql<LastSeen[]>`
    select given.environment_id as "environmentId", flag.evaluated_at as flag,
      environment.evaluated_at as bulk
    from unnest(${options.environmentIds as string[]}::uuid[]) as given (environment_id)
    left join flags_last_seen as flag
      on flag.flag_id = ${options.flagId} and flag.environment_id = given.environment_id
    left join environments_last_seen as environment
      on environment.environment_id = given.environment_id`;
}

/**
 * Returns the first day of a period that covers a number of hours up to the current one. It is later if there are no
 * baselines of that day, because usage-metering did not run. The index cannot be used with a clock in the condition, so
 * the clock is read before.
 */
export async function readTrafficStart(sql: Sql, hours: number): Promise<string> {
  const [row] = await sql<[{ day: string }]>`
    with period as materialized (
      select ((now - ${hours - 1} * interval '1 hour') at time zone 'UTC')::date as first,
        (now at time zone 'UTC')::date as last
      from present_time() as now
    )
    select coalesce(
      (select min(day) from flag_baselines where day >= (select first from period)),
      (select last from period)
    )::text as day`;
  return row.day;
}

type Traffic = { environmentIds: readonly string[]; since: string };

/** Returns the evaluations of single flags since the start of a day, without bulk responses. */
export async function readFlagSums(
  sql: Sql,
  { environmentIds, since }: Traffic,
): Promise<{ flagId: string; evaluations: number }[]> {
  return sql<{ flagId: string; evaluations: number }[]>`
    select flag_id as "flagId", least(sum(evaluations), ${maxSum})::bigint as evaluations
    from (
      select flag_id, evaluations from flags_last_seen
      where environment_id = any(${environmentIds as string[]}::uuid[])
      union all
      select flag_id, -evaluations from flag_baselines
      where environment_id = any(${environmentIds as string[]}::uuid[]) and day = ${since}::text::date
    ) as parts
    group by flag_id`;
}

/** Returns the readers of an environment with a recent report, the latest report first. */
export async function readReaders(sql: Sql, environmentId: string): Promise<Readers["readers"]> {
  const rows = await sql<(Reader & { lastSeenAt: Date })[]>`
    select name, version, knows, last_seen_at as "lastSeenAt"
    from readers
    where environment_id = ${environmentId}
      and last_seen_at > present_time() - ${readerRetentionDays} * interval '1 day'
    order by last_seen_at desc, name, version
    limit ${maxReaders}`;
  return rows.map(({ lastSeenAt, ...reader }) => ({
    ...reader,
    last_seen_at: lastSeenAt.toISOString(),
  }));
}

export type BulkHour = { environmentId: string; hour: Date; answers: number };

/** Returns the bulk responses of environments by hour since the start of a day, oldest first. */
export async function readBulkHours(
  sql: Sql,
  { environmentIds, since }: Traffic,
): Promise<BulkHour[]> {
  return sql<BulkHour[]>`
    select environment_id as "environmentId", hour, answers
    from bulk_answer_hours
    where environment_id = any(${environmentIds as string[]}::uuid[])
      and hour >= ${since}::text::date::timestamp at time zone 'UTC'
    order by hour`;
}

/** Returns the time of the last bulk response of each environment. */
export async function readBulkSeen(
  sql: Sql,
  environmentIds: readonly string[],
): Promise<{ environmentId: string; at: Date }[]> {
  return sql<{ environmentId: string; at: Date }[]>`
    select environment_id as "environmentId", evaluated_at as at
    from environments_last_seen where environment_id = any(${environmentIds as string[]}::uuid[])`;
}

/** Returns the time of the last evaluation of each flag alone, in any of the environments. */
export async function readFlagsSeen(
  sql: Sql,
  { environmentIds, flagIds }: { environmentIds: readonly string[]; flagIds: readonly string[] },
): Promise<{ flagId: string; at: Date }[]> {
  return sql<{ flagId: string; at: Date }[]>`
    select flag_id as "flagId", max(evaluated_at) as at
    from flags_last_seen
    where flag_id = any(${flagIds as string[]}::uuid[])
      and environment_id = any(${environmentIds as string[]}::uuid[])
    group by flag_id`;
}

import type { Sql } from "@halyard/postgres";

/** The use of a month, for reports. Times are those of the database's clock. */
export type MonthUsed = { start: Date; end: Date; used: number };

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

export type LastSeen = { environmentId: string; flag: Date | null; bulk: Date | null };

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

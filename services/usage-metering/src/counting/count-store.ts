import type { Sql, Transaction } from "@halyard/postgres";
import type {
  BulkAnswerSum,
  EnvironmentSeen,
  FlagSeen,
  FlagSum,
  KeySeen,
  MonthSum,
  RequestSum,
} from "./decide-sums.ts";

/**
 * What was used, in PostgreSQL. Every statement takes its rows in the order of their primary key, and a
 * transaction takes the tables in one order, so that transactions wait for one another and never in a
 * circle.
 *
 * The cost of a statement is that of the rows it is given: each is found by its primary key.
 */
export type MessageId = { edge: string; sequence: number };

/**
 * Locks the edges, so that nobody counts for them until the end of the transaction, and answers which of
 * the messages have not been counted yet, and what time it is.
 */
export async function takeUncounted(
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

/** From now on these messages have been counted. */
export const markCounted = (tx: Sql | Transaction, messages: readonly MessageId[]) => tx`
  update edges set counted = edges.counted + news.sequences
  from (
    select edge, range_agg(int8range(sequence, sequence, '[]')) as sequences
    from unnest(${messages.map(({ edge }) => edge)}::uuid[],
      ${messages.map(({ sequence }) => sequence)}::bigint[]) as given (edge, sequence)
    group by edge
  ) as news
  where edges.edge = news.edge`;

export const addRequests = (tx: Sql | Transaction, sums: readonly RequestSum[]) => tx`
  insert into request_hours (organization_id, project_id, environment_id, endpoint, hour, requests)
  select organization_id, project_id, environment_id, endpoint, hour::timestamptz, requests
  from unnest(${sums.map((sum) => sum.organizationId)}::uuid[],
    ${sums.map((sum) => sum.projectId)}::uuid[],
    ${sums.map((sum) => sum.environmentId)}::uuid[],
    ${sums.map((sum) => sum.endpoint)}::text[],
    ${sums.map((sum) => instant(sum.hourMs))}::text[],
    ${sums.map((sum) => sum.requests)}::bigint[])
    as given (organization_id, project_id, environment_id, endpoint, hour, requests)
  order by organization_id, hour::timestamptz, environment_id, endpoint
  on conflict (organization_id, hour, environment_id, endpoint)
    do update set requests = request_hours.requests + excluded.requests`;

/** Answers what the months have come to. */
export const addMonths = (tx: Sql | Transaction, sums: readonly MonthSum[]) => tx<MonthSum[]>`
  insert into organization_months (month, organization_id, requests)
  select (month || '-01')::date, organization_id, requests
  from unnest(${sums.map((sum) => sum.month)}::text[],
    ${sums.map((sum) => sum.organizationId)}::uuid[],
    ${sums.map((sum) => sum.requests)}::bigint[]) as given (month, organization_id, requests)
  order by month, organization_id
  on conflict (month, organization_id)
    do update set requests = organization_months.requests + excluded.requests
  returning organization_id as "organizationId", to_char(month, 'YYYY-MM') as month, requests`;

export const addBulkAnswers = (tx: Sql | Transaction, sums: readonly BulkAnswerSum[]) => tx`
  insert into bulk_answer_hours (environment_id, hour, answers)
  select environment_id, hour::timestamptz, answers
  from unnest(${sums.map((sum) => sum.environmentId)}::uuid[],
    ${sums.map((sum) => instant(sum.hourMs))}::text[],
    ${sums.map((sum) => sum.answers)}::bigint[]) as given (environment_id, hour, answers)
  order by environment_id, hour::timestamptz
  on conflict (environment_id, hour)
    do update set answers = bulk_answer_hours.answers + excluded.answers`;

export const addFlags = (tx: Sql | Transaction, sums: readonly FlagSum[]) => tx`
  insert into flag_hours (flag_id, environment_id, hour, evaluations)
  select flag_id, environment_id, hour::timestamptz, evaluations
  from unnest(${sums.map((sum) => sum.flagId)}::uuid[],
    ${sums.map((sum) => sum.environmentId)}::uuid[],
    ${sums.map((sum) => instant(sum.hourMs))}::text[],
    ${sums.map((sum) => sum.evaluations)}::bigint[])
    as given (flag_id, environment_id, hour, evaluations)
  order by flag_id, environment_id, hour::timestamptz
  on conflict (flag_id, environment_id, hour)
    do update set evaluations = flag_hours.evaluations + excluded.evaluations`;

export const noteEnvironments = (tx: Sql | Transaction, seen: readonly EnvironmentSeen[]) => tx`
  insert into environments_last_seen as known (environment_id, evaluated_at, news)
  select environment_id, at::timestamptz, 'first'
  from unnest(${seen.map(({ environmentId }) => environmentId)}::uuid[],
    ${seen.map(({ atMs }) => instant(atMs))}::text[]) as given (environment_id, at)
  order by environment_id
  on conflict (environment_id) do update set evaluated_at = excluded.evaluated_at,
    news = case known.news when 'none' then 'later' else known.news end
  where known.evaluated_at < excluded.evaluated_at`;

export const noteFlags = (tx: Sql | Transaction, seen: readonly FlagSeen[]) => tx`
  insert into flags_last_seen as known (flag_id, environment_id, evaluated_at, news)
  select flag_id, environment_id, at::timestamptz, 'first'
  from unnest(${seen.map(({ flagId }) => flagId)}::uuid[],
    ${seen.map(({ environmentId }) => environmentId)}::uuid[],
    ${seen.map(({ atMs }) => instant(atMs))}::text[]) as given (flag_id, environment_id, at)
  order by flag_id, environment_id
  on conflict (flag_id, environment_id) do update set evaluated_at = excluded.evaluated_at,
    news = case known.news when 'none' then 'later' else known.news end
  where known.evaluated_at < excluded.evaluated_at`;

export const noteKeys = (tx: Sql | Transaction, seen: readonly KeySeen[]) => tx`
  insert into keys_last_seen as known (key_id, used_at, news)
  select key_id, at::timestamptz, 'first'
  from unnest(${seen.map(({ keyId }) => keyId)}::text[],
    ${seen.map(({ atMs }) => instant(atMs))}::text[]) as given (key_id, at)
  order by key_id
  on conflict (key_id) do update set used_at = excluded.used_at,
    news = case known.news when 'none' then 'later' else known.news end
  where known.used_at < excluded.used_at`;

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

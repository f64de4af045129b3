import type { QuotaEntry } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";

const pageSize = 1_000;
/** Sorts before every other id. */
const nilId = "00000000-0000-0000-0000-000000000000";

/** Returns the requests of all organizations in the current month, by the database's clock, page by page. */
export async function* readPresentMonth(sql: Sql): AsyncGenerator<readonly QuotaEntry[]> {
  let after = nilId;
  for (;;) {
    const page = await sql<QuotaEntry[]>`
      select organization_id, to_char(month, 'YYYY-MM') as month, requests
      from organization_months
      where month = (select date_trunc('month', present_time() at time zone 'UTC')::date)
        and organization_id > ${after}
      order by organization_id
      limit ${pageSize}`;
    yield page;
    after = page.at(-1)?.organization_id ?? after;
    if (page.length < pageSize) return;
  }
}

/**
 * Raises the current month of organizations to published numbers that the database has lost. The statement itself
 * compares the row, so that a commit of another replica after the page was read is not lost. Returns the number of
 * organizations.
 */
export async function adoptHigherMonths(
  sql: Sql,
  published: readonly QuotaEntry[],
): Promise<number> {
  if (published.length === 0) return 0;
  const adopted = await sql`
    insert into organization_months as known (month, organization_id, requests)
    select (month || '-01')::date, organization_id, requests
    from unnest(
      ${published.map(({ organization_id }) => organization_id)}::uuid[],
      ${published.map(({ month }) => month)}::text[],
      ${published.map(({ requests }) => requests)}::bigint[]
    ) as given (organization_id, month, requests)
    where requests > 0
      and (month || '-01')::date = (select date_trunc('month', present_time() at time zone 'UTC')::date)
    order by month, organization_id
    on conflict (month, organization_id)
      do update set requests = excluded.requests
      where known.requests < excluded.requests`;
  return adopted.count;
}

import type { QuotaEntry } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";

const pageSize = 1_000;

/** What organizations have used of the present month, by the database's clock, page by page. */
export async function* readPresentMonth(sql: Sql): AsyncGenerator<readonly QuotaEntry[]> {
  let after: string | undefined;
  for (;;) {
    const page: readonly QuotaEntry[] = await readPage(sql, after);
    yield page;
    after = page.at(-1)?.organization_id;
    if (page.length < pageSize) return;
  }
}

async function readPage(sql: Sql, afterId: string | undefined): Promise<QuotaEntry[]> {
  return sql<QuotaEntry[]>`
    select organization_id, to_char(month, 'YYYY-MM') as month, requests
    from organization_months
    where month = (select date_trunc('month', present_time() at time zone 'UTC')::date)
      ${afterId === undefined ? sql`` : sql`and organization_id > ${afterId}`}
    order by organization_id
    limit ${pageSize}`;
}

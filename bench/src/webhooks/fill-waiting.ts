import type { Sql } from "@halyard/postgres";
import { payload } from "./payload.ts";

/** Enough rows that reading the whole table is slower than an index. */
export const webhooks = 10_000;
const webhooksPerOrganization = 10;
/** Number of webhooks that receive an event. */
const deliveriesPerEvent = 5;
/** One of this many deliveries belongs to the webhook with a large backlog. */
const largeShare = 10;

/** Inserts webhooks of organizations that do not exist. The first one has the large backlog. */
export async function fillWebhooks(sql: Sql): Promise<void> {
  await sql`truncate webhooks, lanes, deliveries, attempts, inbox`;
  await sql`
    insert into webhooks (id, organization_id, project_id, name, url, events, enabled, created_at,
      updated_at)
    select md5('webhook ' || number)::uuid, md5('organization ' || number / ${webhooksPerOrganization})::uuid,
      md5('organization ' || number / ${webhooksPerOrganization})::uuid, 'webhook ' || number,
      'https://example.com/' || number, array['flag.toggled'], true, now(), now()
    from generate_series(0, ${webhooks - 1}::integer) as number`;
  await sql`
    insert into lanes (webhook_id, organization_id)
    select id, organization_id from webhooks`;
}

/**
 * Inserts waiting deliveries into the dispatcher's tables up to a number. Two thirds are due; the others wait
 * for a retry tomorrow.
 */
export async function fillWaiting(sql: Sql, wanted: number): Promise<void> {
  await sql`
    insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
      status, attempts_made, series_attempts, gone_only, created_at, next_attempt_at)
    select uuidv7(), webhook_id, project_id, project_id, uuidv7(), 'flag.toggled', ${payload},
      case when number % 3 = 0 then 'retrying' else 'pending' end, (number % 3 = 0)::integer,
      (number % 3 = 0)::integer, number % 3 <> 0, now(),
      now() + case when number % 3 = 0 then interval '1 day' else interval '-1 hour' end
        + random() * interval '1 minute'
    from generate_series((select count(*) from deliveries) + 1, ${wanted}::bigint) as number
    cross join lateral (
      select case when number % ${largeShare} = 0 then 0 else number % ${webhooks} end as of
    ) as webhook
    cross join lateral (
      select md5('webhook ' || of)::uuid as webhook_id,
        md5('organization ' || of / ${webhooksPerOrganization})::uuid as project_id
    ) as place`;
  await sql`
    insert into attempts (id, delivery_id, attempted_at, status_code, duration_ms, response_body)
    select uuidv7(), id, now(), 500, 12, '' from deliveries
    where status = 'retrying' and not exists (select from attempts where delivery_id = deliveries.id)`;
  await sql`
    insert into inbox (event_id, received_at)
    select uuidv7(), now() - random() * interval '7 days'
    from generate_series(
      (select count(*) from inbox) + 1, ${Math.ceil(wanted / deliveriesPerEvent)}::bigint
    ) as number`;
  await sql`
    update lanes set due_at = (
      select min(next_attempt_at) from deliveries where webhook_id = lanes.webhook_id
    )`;
  await sql`vacuum analyze webhooks, lanes, deliveries, attempts, inbox`;
}

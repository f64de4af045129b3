import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import { until } from "../time.ts";
import { payload } from "./payload.ts";
import type { Targets, WebhookSystem } from "./webhook-system.ts";

/** Deliveries of each hanging webhook. Only some of them are attempted. */
const deliveriesPerHanging = 20;
/** Three times the longest expected time of a backlog. */
const timeoutMs = 120_000;
type Hanging = { webhookIds: readonly string[]; targets: Targets };

/**
 * Inserts deliveries into the dispatcher's tables and makes all of them due at the same time. Measures from
 * the first request until the last outcome is recorded. Returns the rate, and the costs per delivery.
 */
export async function sendBacklog(
  system: WebhookSystem,
  options: { deliveries: number; webhookIds: readonly string[]; hanging?: Hanging },
) {
  const { deliveries, webhookIds, hanging } = options;
  const { admin, targets } = system;
  await admin`truncate deliveries, attempts`;
  await fill(system, webhookIds, deliveries / webhookIds.length);
  if (hanging !== undefined) await fill(system, hanging.webhookIds, deliveriesPerHanging);
  await admin`vacuum analyze deliveries, lanes`;

  await targets.call.expect(deliveries);
  const before = usage(system);
  await admin`
    update lanes set due_at = now()
    where webhook_id in (select webhook_id from deliveries)`;
  const firstMs = await targets.call.all();
  const ids = webhookIds as string[];
  const haveEnded = async () => {
    const open = await admin`
      select from deliveries where finished_at is null and webhook_id = any(${ids}::uuid[]) limit 1`;
    return open.count === 0;
  };
  await until("all outcomes are recorded", haveEnded, { timeoutMs });
  const after = usage(system);
  const [row] = await admin<[{ at: Date; delivered: number }]>`
    select max(finished_at) as at,
      count(*) filter (where status = 'delivered' and attempts_made = 1)::int as delivered
    from deliveries
    where webhook_id = any(${ids}::uuid[])`;
  if (row.delivered !== deliveries)
    throw new Error(`${row.delivered} of ${deliveries} deliveries succeeded at the first attempt`);
  if (hanging !== undefined) await endHanging(system, hanging);
  const each = (name: keyof typeof after) => ((after[name] - before[name]) * 1e3) / deliveries;
  return {
    perSecond: (deliveries / (row.at.getTime() - firstMs)) * 1e3,
    cpuMicroseconds: each("dispatcherMs"),
    postgresMicroseconds: each("postgresMs"),
    receiverMicroseconds: each("receiverMs"),
  };
}

async function fill(
  { admin }: WebhookSystem,
  webhookIds: readonly string[],
  each: number,
): Promise<void> {
  await admin`
    insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
      status, created_at, next_attempt_at)
    select uuidv7(), webhook.id, organization_id, project_id, uuidv7(), 'flag.toggled', ${payload},
      'pending', now(), now()
    from generate_series(1, ${each}) as number, webhooks as webhook
    where webhook.id = any(${webhookIds as string[]}::uuid[])`;
}

/** Ends hanging requests early, so that the next round begins in the same state. */
async function endHanging({ admin }: WebhookSystem, { webhookIds, targets }: Hanging) {
  const [row] = await admin<[{ tried: number }]>`
    select count(distinct webhook_id)::int as tried
    from deliveries
    where webhook_id = any(${webhookIds as string[]}::uuid[])
      and (status = 'delivering' or attempts_made > 0)`;
  if (row.tried !== webhookIds.length)
    throw new Error(`only ${row.tried} of ${webhookIds.length} hanging targets received a request`);
  await until("all hanging requests have ended", async () => {
    await admin`
      update deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now()
      where status in ('pending', 'retrying')`;
    await targets.call.drop();
    const underWay = await admin`select from deliveries where status = 'delivering' limit 1`;
    return underWay.count === 0;
  });
  await admin`update lanes set due_at = null, slow = false`;
}

const usage = ({ dispatcher, postgres, targets }: WebhookSystem) => ({
  dispatcherMs: cpuMs(dispatcher.pid),
  postgresMs: cpuMsOfTree(postgres.pid),
  receiverMs: cpuMs(targets.pid),
});

import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import { until } from "../until.ts";
import { payload } from "./payload.ts";
import type { HangingTargets, Receiver } from "./receivers.ts";
import type { WebhookSystem } from "./webhook-system.ts";

/** Rate and costs per delivery of a backlog. */
export type Sent = {
  perSecond: number;
  dispatcherMicroseconds: number;
  postgresMicroseconds: number;
  receiverMicroseconds: number;
};

/** Deliveries of each hanging webhook. Only some of them are attempted. */
const deliveriesPerHanging = 20;
/** Three times the longest expected time of a backlog. */
const timeoutMs = 120_000;

/**
 * Inserts deliveries into the dispatcher's tables and makes all of them due at the same time. Measures from
 * the first request until the last outcome is recorded.
 */
export async function sendBacklog(
  system: WebhookSystem,
  options: {
    deliveries: number;
    webhookIds: readonly string[];
    receiver: Receiver;
    hanging?: { webhookIds: readonly string[]; targets: HangingTargets };
  },
): Promise<Sent> {
  const { deliveries, webhookIds, receiver, hanging } = options;
  const { admin } = system;
  await admin`truncate deliveries, attempts`;
  await fill(system, webhookIds, deliveries / webhookIds.length);
  if (hanging !== undefined) await fill(system, hanging.webhookIds, deliveriesPerHanging);
  await admin`vacuum analyze deliveries, lanes`;

  const expected = await receiver.expect(deliveries);
  const before = usage(system, receiver);
  await admin`
    update lanes set due_at = now()
    where webhook_id in (select webhook_id from deliveries)`;
  const { firstMs } = await expected.all();
  await until("all outcomes are recorded", () => haveEnded(system, webhookIds), timeoutMs);
  const after = usage(system, receiver);
  const lastMs = await lastRecordedMs(system, webhookIds, deliveries);
  if (hanging !== undefined) await endHanging(system, hanging);
  const each = (name: keyof typeof after) => ((after[name] - before[name]) * 1e3) / deliveries;
  return {
    perSecond: (deliveries / (lastMs - firstMs)) * 1e3,
    dispatcherMicroseconds: each("dispatcherMs"),
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

async function haveEnded({ admin }: WebhookSystem, webhookIds: readonly string[]) {
  const open = await admin`
    select from deliveries
    where finished_at is null and webhook_id = any(${webhookIds as string[]}::uuid[])
    limit 1`;
  return open.count === 0;
}

async function lastRecordedMs(
  { admin }: WebhookSystem,
  webhookIds: readonly string[],
  deliveries: number,
): Promise<number> {
  const [row] = await admin<[{ at: Date; delivered: number }]>`
    select max(finished_at) as at,
      count(*) filter (where status = 'delivered' and attempts_made = 1)::int as delivered
    from deliveries
    where webhook_id = any(${webhookIds as string[]}::uuid[])`;
  if (row.delivered !== deliveries)
    throw new Error(`${row.delivered} of ${deliveries} deliveries succeeded at the first attempt`);
  return row.at.getTime();
}

/** Ends hanging requests early, so that the next round begins in the same state. */
async function endHanging(
  { admin }: WebhookSystem,
  { webhookIds, targets }: { webhookIds: readonly string[]; targets: HangingTargets },
): Promise<void> {
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
    await targets.drop();
    const underWay = await admin`select from deliveries where status = 'delivering' limit 1`;
    return underWay.count === 0;
  });
  await admin`update lanes set due_at = null, slow = false`;
}

function usage({ dispatcher, postgres }: WebhookSystem, receiver: Receiver) {
  return {
    dispatcherMs: cpuMs(dispatcher.child.pid),
    postgresMs: cpuMsOfTree(postgres.pid),
    receiverMs: cpuMs(receiver.pid),
  };
}

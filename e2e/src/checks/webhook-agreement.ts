import { createHmac } from "node:crypto";
import { type FlagEvent, flagEventsStream } from "@halyard/contracts";
import { eventually, type ReceivedRequest } from "@halyard/testing";
import type postgres from "postgres";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { withManager } from "../system/disturbances.ts";
import { awaitSettled, readAll } from "./agreement.ts";

/**
 * Guarantees of webhooks that must hold when all work has finished. For every event that a webhook subscribes to, there
 * is one delivery, and it is delivered. Its request has arrived once, unless repetitions are allowed, with the content
 * of the event and both signatures. Nothing else has arrived, and no delivery is in progress. Each check returns
 * descriptions of the violations.
 */

/** Waits until every event is read, and no delivery is waiting or in progress. */
export const awaitDeliveriesSettled = (sql: postgres.Sql, natsUrl: string, withinMs: number) =>
  awaitNone(sql, natsUrl, { statuses: ["pending", "retrying", "delivering"], withinMs });

/** Waits until every event is read and every delivery is claimed, possibly by a process that has died. */
export const awaitAllAttempted = (sql: postgres.Sql, natsUrl: string, withinMs: number) =>
  awaitNone(sql, natsUrl, { statuses: ["pending", "retrying"], withinMs });

async function awaitNone(
  sql: postgres.Sql,
  natsUrl: string,
  { statuses, withinMs }: { statuses: readonly string[]; withinMs: number },
): Promise<void> {
  await awaitSettled(sql, withinMs);
  await eventually(
    async () => {
      const unread = await countUnread(natsUrl);
      const open = await sql<{ status: string; count: number }[]>`
        select status, count(*)::integer as count
        from webhooks.deliveries
        where status = any(${statuses as string[]})
        group by status`;
      if (unread > 0 || open.length > 0)
        throw new Error(
          `${unread} events are not read; ${open.map(({ status, count }) => `${count} ${status}`)}`,
        );
      return true;
    },
    { withinMs, because: `every event is read and no delivery is ${statuses.join(" or ")}` },
  );
}

/** Returns the number of events that the dispatchers have not read or not acknowledged. */
async function countUnread(natsUrl: string): Promise<number> {
  return withManager(natsUrl, async (manager) => {
    const { name, webhookConsumer } = flagEventsStream;
    const consumer = await manager.consumers.info(name, webhookConsumer);
    return consumer.num_pending + consumer.num_ack_pending;
  });
}

type SentDeliveries = {
  webhookId: string;
  projectId: string;
  secret: string;
  requests: readonly ReceivedRequest[];
  /** The deliveries that may arrive more than once, with the number of allowed repetitions. */
  mayRepeat: ReadonlyMap<string, number>;
};

type DeliveredRow = { id: string; eventId: string; status: string };

export async function faultsOfDeliveries(
  sql: postgres.Sql,
  natsUrl: string,
  sent: SentDeliveries,
): Promise<string[]> {
  const events = await readToggles(natsUrl, sent.projectId);
  const rows = await sql<DeliveredRow[]>`
    select id, event_id as "eventId", status
    from webhooks.deliveries
    where webhook_id = ${sent.webhookId}`;
  const faults: string[] = [];
  const byEvent = Map.groupBy(rows, ({ eventId }) => eventId);
  for (const id of events.keys()) {
    const count = byEvent.get(id)?.length ?? 0;
    if (count !== 1) faults.push(`there are ${count} deliveries of the event ${id}`);
  }
  const arrivals = Map.groupBy(sent.requests, ({ headers }) => headers["x-service-delivery"]);
  for (const row of rows) {
    const event = events.get(row.eventId);
    if (event === undefined) faults.push(`no event ${row.eventId} is in the log`);
    else faults.push(...faultsOfDelivery(row, event, arrivals.get(row.id) ?? [], sent));
    arrivals.delete(row.id);
  }
  for (const id of arrivals.keys()) faults.push(`${id} has arrived, but is not a delivery`);
  return faults;
}

function faultsOfDelivery(
  { id, status }: DeliveredRow,
  event: FlagEvent,
  arrivals: readonly ReceivedRequest[],
  sent: SentDeliveries,
): string[] {
  const faults: string[] = [];
  const most = 1 + (sent.mayRepeat.get(id) ?? 0);
  if (status !== "delivered") faults.push(`${id} is ${status}`);
  if (arrivals.length < 1 || arrivals.length > most)
    faults.push(`${id} has arrived ${arrivals.length} times; at most ${most} are allowed`);
  for (const request of arrivals) {
    faults.push(...faultsOfSignatures(request, sent.secret).map((fault) => `${id}: ${fault}`));
    const text = request.raw.toString();
    if (text !== expectedText(event)) faults.push(`${id} contains ${text}`);
  }
  return faults;
}

/** Returns the exact body that a receiver must get for a toggled flag. */
function expectedText({ event, timestamp, flag, state, environment, triggered_by }: FlagEvent) {
  const { id, key, name } = flag;
  return JSON.stringify({
    event,
    timestamp,
    flag: { id, key, name, enabled: state.enabled },
    environment: { id: environment.id, name: environment.name },
    triggered_by: { id: triggered_by.id, email: triggered_by.email },
  });
}

/** Verifies both signatures of a request with a secret. */
export function faultsOfSignatures({ raw, headers }: ReceivedRequest, secret: string): string[] {
  const faults: string[] = [];
  const plain = `sha256=${createHmac("sha256", secret).update(raw).digest("hex")}`;
  if (headers["x-service-signature"] !== plain) faults.push("its plain signature is wrong");
  try {
    const standard = new StandardWebhook(secret, { format: "raw" });
    standard.verify(raw, headers as Record<string, string>);
  } catch (error) {
    faults.push(`its standard signature is wrong: ${(error as Error).message}`);
  }
  return faults;
}

/** Returns the toggle events of one project by their ids. */
async function readToggles(natsUrl: string, projectId: string): Promise<Map<string, FlagEvent>> {
  const events = (await readAll(natsUrl, flagEventsStream.name)).map(
    ({ payload }) => payload as FlagEvent,
  );
  const ours = events.filter(
    ({ event, project_id }) => event === "flag.toggled" && project_id === projectId,
  );
  return new Map(ours.map((event) => [event.id, event]));
}

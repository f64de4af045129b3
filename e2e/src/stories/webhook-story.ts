import { eventually, type ReceivedRequest, type Receiver, startReceiver } from "@halyard/testing";
import { faultsOfLog } from "../checks/agreement.ts";
import { awaitDeliveriesSettled, faultsOfDeliveries } from "../checks/webhook-agreement.ts";
import { awaitNoConnections, forgetMessageIdsAtOnce } from "../system/disturbances.ts";
import type { System } from "../system/system.ts";
import { createTenant, must, type Tenant } from "../system/tenancy.ts";
import { type CreatedFlag, createFlags, type FlipStream, streamFlips } from "../traffic/changes.ts";

/**
 * One scenario of webhooks in a running system: a tenant with flags, a receiver of every toggle, and changes during a
 * fault. At the end, the scenario checks that each event was delivered, and none twice, except those whose outcome no
 * process could know.
 *
 * The broker expires message ids almost immediately, so that every repetition reaches its consumer.
 */
export type WebhookStory = {
  tenant: Tenant;
  receiver: Receiver;
  webhookId: string;
  flags: readonly CreatedFlag[];
  switchByHand(flag: CreatedFlag, enabled: boolean): Promise<void>;
  /** Starts to switch every flag back and forth, `times` times. */
  flip(options: { times: number; pauseMs: number }): FlipStream;
  /** Returns the deliveries so far, in the order of their creation. */
  deliveries(): Promise<DeliveryState[]>;
  /** Waits for the only delivery to have this status, and returns it. */
  deliveryThatIs(status: string): Promise<DeliveryState>;
  /** Returns the requests that have arrived for a delivery. */
  arrived(delivery: { id: string }): ReceivedRequest[];
  /**
   * Ends the claims of dead dispatchers immediately, which otherwise expire after seventy seconds. No dispatcher may be
   * running. A claimed delivery may have been sent, so it may arrive once more. Returns the number of ended claims.
   */
  endClaims(): Promise<number>;
  /** Waits until all work has finished. Returns descriptions of everything that violates a guarantee. */
  faults(options?: { withinMs?: number }): Promise<string[]>;
};

type DeliveryState = { id: string; status: string; attemptsMade: number };

const secret = "a secret between us and the receiver";
const defaultSettleWithinMs = 30_000;

export async function beginWebhookStory(
  system: System,
  options: { name: string; flags?: number },
): Promise<WebhookStory> {
  const { sql, nats } = system;
  const [management] = system.managements;
  const [dispatcher] = system.dispatchers;
  if (management === undefined || dispatcher === undefined)
    throw new Error("a webhook story needs a management process and a dispatcher");
  const tenant = await createTenant(management.url, { name: options.name });
  const key = tenant.serverKey;
  const keys = Array.from({ length: options.flags ?? 1 }, (_, index) => `flag-${index}`);
  const flags = await createFlags(management.url, key, keys);
  // The first process that needs the stream creates it, possibly after all processes are ready.
  await eventually(async () => {
    await forgetMessageIdsAtOnce(nats.url);
    return true;
  });
  const receiver = await startReceiver();
  system.endsWithSystem(receiver.close);
  const webhookId = await createWebhook(dispatcher.url, tenant, {
    name: options.name,
    url: `${receiver.url}/hooks`,
    events: ["flag.toggled"],
    secret,
  });
  const mayRepeat = new Map<string, number>();

  const switchByHand = async (flag: CreatedFlag, enabled: boolean) => {
    const [inService] = system.managements;
    const url = `${inService?.url}/api/v1/flags/${flag.id}`;
    await must(url, { method: "PATCH", key, body: { enabled } });
  };
  const deliveries = () => sql<DeliveryState[]>`
    select id, status, attempts_made as "attemptsMade"
    from webhooks.deliveries
    where webhook_id = ${webhookId}
    order by id`;

  return {
    tenant,
    receiver,
    webhookId,
    flags,
    switchByHand,
    flip({ times, pauseMs }) {
      const managementUrls = () => system.managements.map(({ url }) => url);
      const stream = streamFlips({ managementUrls, serverKey: key, flags, times, pauseMs });
      system.endsWithSystem(stream.stop);
      return stream;
    },
    deliveries,
    deliveryThatIs: (status) =>
      eventually(
        async () => {
          const [delivery, ...others] = await deliveries();
          if (others.length > 0) throw new Error("there is more than one delivery");
          if (delivery?.status !== status) throw new Error(`the delivery is ${delivery?.status}`);
          return delivery;
        },
        { because: `the delivery is ${status}`, withinMs: defaultSettleWithinMs },
      ),
    arrived: ({ id }) =>
      receiver.requests.filter(({ headers }) => headers["x-service-delivery"] === id),
    async endClaims() {
      // PostgreSQL still executes the last statement of a process after its death.
      await awaitNoConnections(sql, "webhooks_service");
      const ended = await sql<{ id: string }[]>`
        update webhooks.deliveries
        set next_attempt_at = now()
        where status = 'delivering' and webhook_id = ${webhookId}
        returning id`;
      if (ended.length > 0)
        await sql`update webhooks.lanes set due_at = now() where webhook_id = ${webhookId}`;
      for (const { id } of ended) mayRepeat.set(id, (mayRepeat.get(id) ?? 0) + 1);
      return ended.length;
    },
    async faults({ withinMs = defaultSettleWithinMs } = {}) {
      await awaitDeliveriesSettled(sql, nats.url, withinMs);
      const { requests } = receiver;
      const sent = { webhookId, projectId: tenant.projectId, secret, requests, mayRepeat };
      return [
        ...(await faultsOfLog(sql, nats.url)),
        ...(await faultsOfDeliveries(sql, nats.url, sent)),
      ];
    },
  };
}

/** Creates a webhook. Returns its id. */
export async function createWebhook(
  dispatcherUrl: string,
  { projectId, serverKey }: Pick<Tenant, "projectId" | "serverKey">,
  fields: { name: string; url: string; events: readonly string[]; secret?: string },
): Promise<string> {
  const url = `${dispatcherUrl}/api/v1/projects/${projectId}/webhooks`;
  const create = () => must(url, { method: "POST", key: serverKey, body: fields });
  // The dispatcher receives a new key a moment after its creation.
  const created = await eventually(create, { because: "the dispatcher has received the key" });
  return created.id;
}

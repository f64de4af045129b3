import { eventually, type ReceivedRequest, type Receiver, startReceiver } from "@halyard/testing";
import { faultsOfLog } from "../checks/agreement.ts";
import { awaitDeliveriesSettled, faultsOfDeliveries } from "../checks/webhook-agreement.ts";
import { awaitNoConnections, forgetMessageIdsAtOnce } from "../system/disturbances.ts";
import type { System } from "../system/system.ts";
import { createTenant, must, type Tenant } from "../system/tenancy.ts";
import { type CreatedFlag, createFlags, type FlipStream, streamFlips } from "../traffic/changes.ts";

/**
 * One story of webhooks in a running system: a tenant of its own with flags and a receiver that is to
 * be told of every time that one of them is switched, changes while something goes wrong, and at the
 * end the question whether each was told, and none twice but those of which nobody could know.
 *
 * The broker forgets message ids almost at once here, so that each repetition reaches its reader.
 */
export type WebhookStory = {
  tenant: Tenant;
  receiver: Receiver;
  webhookId: string;
  flags: readonly CreatedFlag[];
  switchByHand(flag: CreatedFlag, enabled: boolean): Promise<void>;
  /** Begins to switch every flag back and forth so many times. */
  flip(options: { times: number; pauseMs: number }): FlipStream;
  /** The deliveries so far, in the order of their creation. */
  deliveries(): Promise<DeliveryState[]>;
  /** The one delivery that there is, as soon as there is one, with this status. */
  deliveryThatIs(status: string): Promise<DeliveryState>;
  /** What has arrived of a delivery. */
  arrived(delivery: { id: string }): ReceivedRequest[];
  /**
   * Lets the claims that dead dispatchers have left come free, as they do after seventy seconds; none may be
   * alive. What was claimed may have been sent, so it may arrive once more. Answers how many they are.
   */
  endClaims(): Promise<number>;
  /** Waits until all has come to rest, and says everything that is not as it was promised. */
  faults(options?: { withinMs?: number }): Promise<string[]>;
};

export type DeliveryState = { id: string; status: string; attemptsMade: number };

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
    throw new Error("a story of webhooks needs a management and a dispatcher to begin with");
  const tenant = await createTenant(management.url, { name: options.name });
  const key = tenant.serverKey;
  const keys = Array.from({ length: options.flags ?? 1 }, (_, index) => `flag-${index}`);
  const flags = await createFlags(management.url, key, keys);
  // The stream is made by whoever comes first, which may be after everybody is ready.
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
      // What a process has asked for last is still done after its death.
      await awaitNoConnections(sql, "webhooks_runtime");
      const ended = await sql<{ id: string }[]>`
        update webhooks.deliveries
        set claimed_until = now() - interval '1 millisecond'
        where status = 'delivering' and webhook_id = ${webhookId}
        returning id`;
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

/** Answers its id. */
export async function createWebhook(
  dispatcherUrl: string,
  { projectId, serverKey }: Pick<Tenant, "projectId" | "serverKey">,
  fields: { name: string; url: string; events: readonly string[]; secret?: string },
): Promise<string> {
  const url = `${dispatcherUrl}/api/v1/projects/${projectId}/webhooks`;
  const create = () => must(url, { method: "POST", key: serverKey, body: fields });
  // The key is heard of a moment after it was issued.
  const created = await eventually(create, { because: "the dispatcher has heard of the key" });
  return created.id;
}

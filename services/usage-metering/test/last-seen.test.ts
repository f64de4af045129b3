import { checkUsageLastSeen, type UsageLastSeen, usageStream } from "@halyard/contracts";
import { parseJson } from "@halyard/jetstream";
import { eventually } from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { AckPolicy } from "@nats-io/jetstream";
import { v7 as uuidv7 } from "uuid";
import { makeEdge, makeTenant, openMetering, type Replica, type Tenant } from "./usage-fixture.ts";

/**
 * The messages to management about the last use of keys and flags, with two replicas. The test reads them in place of
 * management.
 */
const sent: UsageLastSeen[] = [];

const metering = await openMetering();
const [replica] = (await Promise.all([1, 2].map(() => metering.startReplica()))) as [Replica];
await metering.manager.consumers.add(usageStream.name, {
  durable_name: usageStream.lastSeen.consumer,
  filter_subject: usageStream.lastSeen.subject,
  ack_policy: AckPolicy.Explicit,
});
const consumer = await metering.client.consumers.get(
  usageStream.name,
  usageStream.lastSeen.consumer,
);
const management = await consumer.consume();
afterAll(async () => {
  await management.close();
  await metering.close();
});
void listen();
beforeEach(() => {
  sent.length = 0;
});

async function listen(): Promise<void> {
  for await (const message of management) {
    const checked = checkUsageLastSeen(parseJson(message.data));
    if (!checked.ok) throw new Error(checked.problem);
    sent.push(checked.value);
    message.ack();
  }
}

/** Returns a function that counts the requests for the number of messages that wait for management. */
function countStatusRequests(): () => number {
  let requests = 0;
  metering.connection.subscribe(`$JS.API.STREAM.INFO.${usageStream.name}`, {
    callback(_error, message) {
      if (message.string().includes(usageStream.lastSeen.subject)) requests += 1;
    },
  });
  return () => requests;
}

const keysSent = (tenant: Tenant) =>
  sent.flatMap(({ keys }) => keys).filter(({ key_id }) => key_id === tenant.clientKeyId);
const at = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1_000).toISOString();
const usedAt = (tenant: Tenant, instant: string) => [
  { key_id: tenant.clientKeyId, used_at: instant },
];

describe("a first use", () => {
  it("is sent: keys, bulk responses, and single flags", async () => {
    const tenant = makeTenant();
    const [flagId, instant] = [uuidv7(), at(10)];
    const usage = tenant.used({
      bulk_answers: 1,
      bulk_answered_at: instant,
      flags: [{ flag_id: flagId, evaluations: 1, evaluated_at: instant }],
    });
    await metering.send(makeEdge().message([usage], usedAt(tenant, instant)));
    await eventually(() => keysSent(tenant).length > 0);
    const environment_id = tenant.environmentId;
    expect(sent).toContainEqual({
      keys: [{ key_id: tenant.clientKeyId, used_at: instant }],
      environments: [{ environment_id, evaluated_at: instant }],
      flags: [{ environment_id, flag_id: flagId, evaluated_at: instant }],
    });
  });

  it("is sent in several messages if there are too many rows for one", async () => {
    const flags = Array.from({ length: 2_500 }, () => ({
      flag_id: uuidv7(),
      evaluations: 1,
      evaluated_at: at(10),
    }));
    await metering.send(makeEdge().message([makeTenant().used({ flags })]));
    const flagsSent = () => new Set(sent.flatMap((message) => message.flags.map((f) => f.flag_id)));
    await eventually(() => flagsSent().size === 2_500);
    expect(Math.max(...sent.map((message) => message.flags.length))).toBe(1_000);
  });
});

describe("a later use", () => {
  it("is sent if its time is later, and not if it is earlier or equal", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const send = (instant: string) => metering.send(edge.message([], usedAt(tenant, instant)));
    const [first, early, late] = [at(100), at(200), at(50)];
    await send(first);
    await eventually(() => keysSent(tenant).length > 0);
    await send(early);
    await send(first);
    await send(late);
    await eventually(() => keysSent(tenant).some(({ used_at }) => used_at === late));
    expect(keysSent(tenant).map(({ used_at }) => used_at)).toEqual([first, late]);
  });
});

describe("a use that management may not have received", () => {
  it("is sent again if the process died before it marked the row as sent", async () => {
    const tenant = makeTenant();
    await metering.send(makeEdge().message([], usedAt(tenant, at(10))));
    await eventually(() => keysSent(tenant).length > 0);
    await eventually(async () => {
      const [row] = await metering.admin`
        select news from keys_last_seen where key_id = ${tenant.clientKeyId}`;
      return row?.news === "none";
    });
    sent.length = 0;
    await metering.admin`
      update keys_last_seen set news = 'first' where key_id = ${tenant.clientKeyId}`;
    await eventually(() => keysSent(tenant).length > 0);
  });

  it("is sent when the queue exists again", async () => {
    const tenant = makeTenant();
    await metering.manager.streams.delete(usageStream.name);
    await metering.admin`
      insert into keys_last_seen values (${tenant.clientKeyId}, ${at(10)}::timestamptz, 'first')`;
    const news = async () => {
      const [row] = await metering.admin`
        select news from keys_last_seen where key_id = ${tenant.clientKeyId}`;
      return row?.news;
    };
    await eventually(async () => (await news()) === "none");
    const info = await metering.manager.streams.info(usageStream.name, { subjects_filter: ">" });
    expect(info.state.subjects).toMatchObject({ [usageStream.lastSeen.subject]: 1 });
  });
});

describe("while management does not read", () => {
  it("the number of sent messages is bounded, and further rows stay in the table", async () => {
    const { subject, consumer } = usageStream.lastSeen;
    await metering.manager.consumers.delete(usageStream.name, consumer).catch(() => undefined);
    const waiting = Array.from({ length: 50 }, () => metering.client.publish(subject, "waits"));
    await Promise.all(waiting);
    const tenant = makeTenant();
    await metering.send(makeEdge().message([], usedAt(tenant, at(10))));
    const news = async () => {
      const [row] = await metering.admin`
        select news from keys_last_seen where key_id = ${tenant.clientKeyId}`;
      return row?.news;
    };
    await eventually(async () => (await news()) === "first");
    // The sender first requests the number of waiting messages. After two requests it has postponed the row.
    const requestCount = countStatusRequests();
    await eventually(() => requestCount() >= 2);
    expect(await news()).toBe("first");
    await metering.manager.streams.purge(usageStream.name, { filter: subject });
    await eventually(async () => (await news()) === "none");
  });
});

describe("the use of a server key on these routes", () => {
  it("is also sent", async () => {
    const tenant = makeTenant();
    await metering.bucket.put(...tenant.entries);
    const key = tenant.serverKey;
    await eventually(async () => (await replica.call("/api/v1/usage", { key })).status === 200);
    await eventually(async () => {
      // nats-server 2.9.10 crashes if a message is requested while its stream is being created.
      await metering.manager.streams.info(usageStream.name);
      const queue = await metering.manager.streams.getMessage(usageStream.name, {
        last_by_subj: usageStream.lastSeen.subject,
      });
      return queue?.json<UsageLastSeen>().keys.some(({ key_id }) => key_id === tenant.serverKeyId);
    });
  });
});

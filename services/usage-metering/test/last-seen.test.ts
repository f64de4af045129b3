import { checkUsageLastSeen, type UsageLastSeen, usageStream } from "@halyard/contracts";
import { parseJson } from "@halyard/jetstream";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { AckPolicy, type ConsumerMessages } from "@nats-io/jetstream";
import { v7 as uuidv7 } from "uuid";
import {
  type Metering,
  makeEdge,
  makeTenant,
  openMetering,
  type Replica,
  type Tenant,
} from "./usage-fixture.ts";

/** What management is told of keys and flags, with two replicas; the test is in management's place. */
let metering: Metering;
let replica: Replica;
let management: ConsumerMessages;
const told: UsageLastSeen[] = [];

beforeAll(async () => {
  metering = await openMetering();
  [replica] = (await Promise.all([1, 2].map(() => metering.startReplica()))) as [Replica];
  await metering.manager.consumers.add(usageStream.name, {
    durable_name: usageStream.lastSeen.consumer,
    filter_subject: usageStream.lastSeen.subject,
    ack_policy: AckPolicy.Explicit,
  });
  const consumer = await metering.client.consumers.get(
    usageStream.name,
    usageStream.lastSeen.consumer,
  );
  management = await consumer.consume();
  void listen();
});
beforeEach(() => {
  told.length = 0;
});
afterAll(async () => {
  await management?.close();
  await metering?.close();
});

async function listen(): Promise<void> {
  for await (const message of management) {
    const checked = checkUsageLastSeen(parseJson(message.data));
    if (!checked.ok) throw new Error(checked.problem);
    told.push(checked.value);
    message.ack();
  }
}

/** How often anybody has asked since how much waits for management. */
function countQuestions(): () => number {
  let questions = 0;
  metering.connection.subscribe(`$JS.API.STREAM.INFO.${usageStream.name}`, {
    callback(_error, message) {
      if (message.string().includes(usageStream.lastSeen.subject)) questions += 1;
    },
  });
  return () => questions;
}

const keysSent = (tenant: Tenant) =>
  told.flatMap(({ keys }) => keys).filter(({ key_id }) => key_id === tenant.clientKeyId);
const at = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1_000).toISOString();
const usedAt = (tenant: Tenant, instant: string) => [
  { key_id: tenant.clientKeyId, used_at: instant },
];

describe("what was seen for the first time", () => {
  it("is told: keys, answers about all flags, and single flags", async () => {
    const tenant = makeTenant();
    const [flagId, instant] = [uuidv7(), at(10)];
    const usage = tenant.used({
      bulk_answers: 1,
      bulk_answered_at: instant,
      flags: [{ flag_id: flagId, evaluations: 1, evaluated_at: instant }],
    });
    await metering.tell(makeEdge().message([usage], usedAt(tenant, instant)));
    await eventually(() => keysSent(tenant).length > 0);
    const environment_id = tenant.environmentId;
    expect(told).toContainEqual({
      keys: [{ key_id: tenant.clientKeyId, used_at: instant }],
      environments: [{ environment_id, evaluated_at: instant }],
      flags: [{ environment_id, flag_id: flagId, evaluated_at: instant }],
    });
  });

  it("is told in as many messages as it takes", async () => {
    const flags = Array.from({ length: 2_500 }, () => ({
      flag_id: uuidv7(),
      evaluations: 1,
      evaluated_at: at(10),
    }));
    await metering.tell(makeEdge().message([makeTenant().used({ flags })]));
    const flagsSent = () => new Set(told.flatMap((message) => message.flags.map((f) => f.flag_id)));
    await eventually(() => flagsSent().size === 2_500);
    expect(Math.max(...told.map((message) => message.flags.length))).toBe(1_000);
  });
});

describe("what is seen again", () => {
  it("is told when it is later, and not when it is earlier or the same", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const tell = (instant: string) => metering.tell(edge.message([], usedAt(tenant, instant)));
    const [first, early, late] = [at(100), at(200), at(50)];
    await tell(first);
    await eventually(() => keysSent(tenant).length > 0);
    await tell(early);
    await tell(first);
    await tell(late);
    await eventually(() => keysSent(tenant).some(({ used_at }) => used_at === late));
    expect(keysSent(tenant).map(({ used_at }) => used_at)).toEqual([first, late]);
  });
});

describe("what management may not have heard", () => {
  it("is told again when the process died before it could note that it was told", async () => {
    const tenant = makeTenant();
    await metering.tell(makeEdge().message([], usedAt(tenant, at(10))));
    await eventually(() => keysSent(tenant).length > 0);
    await eventually(async () => {
      const [row] = await metering.admin`
        select news from keys_last_seen where key_id = ${tenant.clientKeyId}`;
      return row?.news === "none";
    });
    told.length = 0;
    await metering.admin`
      update keys_last_seen set news = 'first' where key_id = ${tenant.clientKeyId}`;
    await eventually(() => keysSent(tenant).length > 0);
  });

  it("is told when there is a queue again", async () => {
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

describe("while management reads nothing", () => {
  it("so much is told as does not crowd out what edges count, and the rest stays in the table", async () => {
    const { subject, consumer } = usageStream.lastSeen;
    await metering.manager.consumers.delete(usageStream.name, consumer).catch(() => undefined);
    const waiting = Array.from({ length: 50 }, () => metering.client.publish(subject, "waits"));
    await Promise.all(waiting);
    const tenant = makeTenant();
    await metering.tell(makeEdge().message([], usedAt(tenant, at(10))));
    const news = async () => {
      const [row] = await metering.admin`
        select news from keys_last_seen where key_id = ${tenant.clientKeyId}`;
      return row?.news;
    };
    await eventually(async () => (await news()) === "first");
    // Whoever has something to tell asks first how much waits: it has seen this, and left it.
    const timesAsked = countQuestions();
    await eventually(() => timesAsked() >= 2);
    expect(await news()).toBe("first");
    await metering.manager.streams.purge(usageStream.name, { filter: subject });
    await eventually(async () => (await news()) === "none");
  });
});

describe("a server key that is used on these routes", () => {
  it("is told as well", async () => {
    const tenant = makeTenant();
    await metering.bucket.put(...tenant.entries);
    const key = tenant.serverKey;
    await eventually(async () => (await replica.call("/api/v1/usage", { key })).status === 200);
    await eventually(async () => {
      // A queue that is still being made must not be asked for a message: nats-server 2.9.10 crashes.
      await metering.manager.streams.info(usageStream.name);
      const queue = await metering.manager.streams.getMessage(usageStream.name, {
        last_by_subj: usageStream.lastSeen.subject,
      });
      return queue?.json<UsageLastSeen>().keys.some(({ key_id }) => key_id === tenant.serverKeyId);
    });
  });
});

import {
  type EventName,
  erasedEmail,
  type FlagEvent,
  flagEventsStream,
  type SigningService,
} from "@halyard/contracts";
import { eventually, testMessageSigner } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { Webhook } from "standardwebhooks";
import { v7 as uuidv7 } from "uuid";
import { recordEvent } from "../../src/events/consume-events.ts";
import { eraseNextBatch } from "../../src/events/erasures.ts";
import { payloadOf } from "../../src/sending/payload.ts";
import {
  makeAudienceEvent,
  makeChangeRequestEvent,
  makeEvent,
  makeProtectionEvent,
  openDispatch,
  type TestWebhook,
} from "./dispatch-fixture.ts";

/** The deliveries of an event: their webhooks and their number. */

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
const replica = await dispatch.startReplica();
afterEach(() => dispatch.receiver.reset());

describe("an event", () => {
  it("is sent to each webhook of its project that subscribes to it, and to no other", async () => {
    const { newWebhook, received, deliveriesTo } = dispatch;
    const one = await newWebhook();
    const scope = { projectId: one.projectId, organizationId: one.organizationId };
    const two = await newWebhook({ ...scope, events: ["flag.deleted", "flag.toggled"] });
    const others = [
      await newWebhook({ ...scope, enabled: false }),
      await newWebhook({ ...scope, events: ["flag.deleted"] }),
      await newWebhook({ organizationId: one.organizationId }),
    ];
    const event = makeEvent({ event: "flag.toggled" }, one);
    await dispatch.log.publish(event);
    for (const webhook of [one, two]) {
      const delivery = await dispatch.deliveryWith(webhook, "delivered");
      expect(delivery).toMatchObject({ event_id: event.id, attempts_made: 1 });
      const [request] = received(webhook);
      expect(request?.raw.toString()).toBe(JSON.stringify(payloadOf(event)));
      expect(request?.headers).toMatchObject({
        "content-type": "application/json",
        "x-service-event": "flag.toggled",
        "x-service-delivery": delivery.id,
      });
    }
    for (const webhook of others) expect(await deliveriesTo(webhook)).toEqual([]);
    expect(dispatch.receiver.requests).toHaveLength(2);
  });

  it.each<Partial<FlagEvent>>([
    {
      event: "flag.updated",
      changes: {
        variations: {
          from: [{ key: "blue", value: "#00f" }],
          to: [
            { key: "blue", value: { hex: ["#00f", 0.1] } },
            { key: "red", value: { sha256: "0".repeat(64), bytes: 2_000 } },
          ],
        },
      },
      state_before: null,
    },
    {
      event: "flag_state.updated",
      state: {
        ...{ enabled: true, rollout_percentage: 12.25, targeting_rules: [] },
        serve: { split: [{ variation: "blue", weight: 100, ranges: [[0, 10_000]] }] },
        off_variation: null,
      },
    },
  ])("of a typed flag is sent whole: $event", async (fields) => {
    const webhook = await dispatch.newWebhook({ events: [fields.event as EventName] });
    const event = makeEvent(fields, webhook);
    await dispatch.log.publish(event);
    await dispatch.deliveryWith(webhook, "delivered");
    const sent = JSON.parse(dispatch.received(webhook)[0]?.raw.toString() ?? "");
    expect([sent.changes, sent.state]).toEqual([fields.changes, fields.state]);
  });

  it("about an audience is sent to the webhooks that subscribe to it", async () => {
    const webhook = await dispatch.newWebhook({ events: ["audience.updated"] });
    const event = makeAudienceEvent({}, webhook);
    await dispatch.log.publish(makeEvent({}, webhook), event);
    const delivery = await dispatch.deliveryWith(webhook, "delivered");
    expect(delivery).toMatchObject({ event_id: event.id, event: "audience.updated" });
    const requests = dispatch.received(webhook);
    expect(requests.map(({ raw }) => raw.toString())).toEqual([JSON.stringify(payloadOf(event))]);
  });

  it("about a change request or a protection is sent to the webhooks that subscribe to it", async () => {
    const webhook = await dispatch.newWebhook({
      events: ["change_request.opened", "environment.protection_changed"],
    });
    const events = [makeChangeRequestEvent({}, webhook), makeProtectionEvent({}, webhook)];
    const other = makeChangeRequestEvent({ event: "change_request.applied" }, webhook);
    await dispatch.log.publish(other, ...events);
    await dispatch.allEnded(webhook, 2);
    const bodies = dispatch.received(webhook).map(({ raw }) => raw.toString());
    expect(new Set(bodies)).toEqual(
      new Set(events.map((event) => JSON.stringify(payloadOf(event)))),
    );
  });

  it("is signed with the webhook's secret", async () => {
    const text = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    const webhook = await dispatch.newWebhook({ secret: text });
    await dispatch.log.publish(makeEvent({}, webhook));
    await dispatch.deliveryWith(webhook, "delivered");
    const [request] = dispatch.received(webhook);
    const headers = request?.headers as Record<string, string>;
    expect(new Webhook(text).verify(request?.raw.toString() ?? "", headers)).toBeTruthy();
  });

  it("is sent within milliseconds", async () => {
    const webhook = await dispatch.newWebhook();
    const latenciesMs: number[] = [];
    for (let count = 1; count <= 10; count += 1) {
      const event = makeEvent({}, webhook);
      const publishedAt = Date.now();
      await dispatch.log.publish(event);
      await eventually(() => dispatch.received(webhook).length === count);
      const received = dispatch.received(webhook).at(-1);
      latenciesMs.push((received?.receivedAt.getTime() ?? 0) - publishedAt);
      await dispatch.allEnded(webhook, count);
    }
    // A busy machine may delay some. Two may arrive just before a periodic search by chance.
    const [third] = latenciesMs.toSorted((one, other) => one - other).slice(2);
    if (process.env.TEST_LOG_LEVEL)
      process.stdout.write(`latencies: ${latenciesMs.join(" ")} ms\n`);
    // Without the wake-up, an idle replica searches only once per second.
    expect(third).toBeLessThan(500);
  });

  it("that is received twenty times is sent once", async () => {
    const webhook = await dispatch.newWebhook();
    const event = makeEvent({}, webhook);
    await dispatch.log.publish(...Array.from({ length: 20 }, () => event));
    await dispatch.log.isConsumed();
    await dispatch.allEnded(webhook, 1);
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("is sent once if the process fails between the commit and the acknowledgement", async () => {
    const webhook = await dispatch.newWebhook();
    const event = makeEvent({}, webhook);
    // The state after the failure: the deliveries are committed, and the event is not acknowledged.
    expect(await recordEvent(replica.sql, event, uuidv7)).toBe(1);
    await dispatch.log.publish(event);
    await dispatch.log.isConsumed();
    await dispatch.allEnded(webhook, 1);
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("from before the creation of a webhook is not sent to it when received again", async () => {
    const event = makeEvent();
    await dispatch.log.publish(event);
    await dispatch.log.isConsumed();
    const { project_id: projectId, organization_id: organizationId } = event;
    const webhook = await dispatch.newWebhook({ projectId, organizationId });
    await dispatch.log.publish(event);
    await dispatch.log.isConsumed();
    expect(await dispatch.deliveriesTo(webhook)).toEqual([]);
  });

  it("that is invalid is dead-lettered and does not delay others", async () => {
    const webhook = await dispatch.newWebhook();
    await dispatch.log.publishText("flag.toggled", "nonsense");
    await dispatch.log.publishText("flag.toggled", JSON.stringify({ id: "no event" }));
    await dispatch.log.publish(makeEvent({}, webhook));
    await dispatch.deliveryWith(webhook, "delivered");
    await dispatch.log.isConsumed();
    expect(await replica.metrics.metrics()).toMatch(
      /messages_processed_total\{[^}]*"set_aside"[^}]*\} 2/,
    );
  });

  const forgeries: [string, (event: FlagEvent) => Promise<string | undefined>][] = [
    ["without a signature", async () => undefined],
    ["with the signature of the scheduler", (event) => sign("scheduler", event)],
    ["with the signature of another event", () => sign("management", makeEvent())],
  ];
  const sign = (service: SigningService, event: FlagEvent) =>
    testMessageSigner(service)({ subject: event.event, payload: JSON.stringify(event) });

  it.each(forgeries)("is not delivered %s", async (_what, forge) => {
    const webhook = await dispatch.newWebhook();
    const event = makeEvent({}, webhook);
    await dispatch.log.publishForged(event, await forge(event));
    await dispatch.log.isConsumed();
    expect(await dispatch.deliveriesTo(webhook)).toEqual([]);
  });

  it.each(["usage-metering", "sdk-edge"] as const)(
    "is not delivered if a consumer of %s has stored it in the log",
    async (user) => {
      const webhook = await dispatch.newWebhook();
      await dispatch.log.deliverFromBucket(user, makeEvent({ event: "flag.deleted" }, webhook));
      await dispatch.log.isConsumed();
      expect(await dispatch.deliveriesTo(webhook)).toEqual([]);
    },
  );

  it("is sent although signed messages of another queue were delivered into the log", async () => {
    const webhook = await dispatch.newWebhook();
    // More than the dispatcher handles concurrently.
    await dispatch.log.deliverOutcomes(6);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => dispatch.received(webhook).length === 1);
  });

  it("is sent in the order of events if several wait", async () => {
    const webhook = await dispatch.newWebhook({ slow: true });
    const ids: string[] = [];
    for (let number = 0; number < 10; number += 1) {
      const timestamp = new Date(Date.now() - 60_000 + number).toISOString();
      const event = makeEvent({ timestamp }, webhook);
      ids.push(event.id);
      // Recorded without a wake-up, so that most are recorded before the first claim.
      await recordEvent(replica.sql, event, uuidv7);
    }
    await eventually(() => dispatch.received(webhook).length === 10);
    const sent = dispatch.received(webhook).map(({ headers }) => headers["x-service-delivery"]);
    const deliveries = await dispatch.deliveriesTo(webhook);
    const eventOf = (id: unknown) => deliveries.find((delivery) => delivery.id === id)?.event_id;
    expect(sent.map(eventOf)).toEqual(ids);
  });
});

describe("the erasure of a user", () => {
  const eraseEverywhere = async (userId: string, webhook: TestWebhook) => {
    const erased = {
      id: uuidv7(),
      event: flagEventsStream.erasureSubject,
      timestamp: new Date().toISOString(),
      organization_id: makeEvent({}, webhook).organization_id,
      user_id: userId,
    };
    await dispatch.log.publishText(flagEventsStream.erasureSubject, JSON.stringify(erased));
    await dispatch.log.isConsumed();
    while (await eraseNextBatch(replica.sql));
  };
  const payloadsOf = async (webhook: TestWebhook) =>
    (
      await dispatch.admin<{ payload: string }[]>`
      select payload from deliveries where webhook_id = ${webhook.id} order by id`
    ).map(({ payload }) => payload);

  it("replaces the address in stored payloads, and changes nothing else", async () => {
    const webhook = await dispatch.newWebhook();
    const ada = { id: uuidv7(), email: 'ada"\\@example.com' };
    const bob = { id: uuidv7(), email: "bob@example.com" };
    const flag = makeEvent().flag;
    const name = `"triggered_by":{"id":"${ada.id}","email":"kept@example.com"}`;
    const byAda = makeEvent({ triggered_by: ada, flag: { ...flag, name } }, webhook);
    const byBob = makeEvent({ triggered_by: bob }, webhook);
    for (const event of [byAda, byBob]) await recordEvent(replica.sql, event, uuidv7);
    await eraseEverywhere(ada.id, webhook);
    expect(await payloadsOf(webhook)).toEqual([
      JSON.stringify(payloadOf({ ...byAda, triggered_by: { ...ada, email: erasedEmail(ada.id) } })),
      JSON.stringify(payloadOf(byBob)),
    ]);
  });

  it("replaces the address in texts for chat systems, at their beginning only", async () => {
    const webhook = await dispatch.newWebhook();
    const ada = { id: uuidv7(), email: 'ada.($1)"\\@example.com' };
    const { change_request: request } = makeChangeRequestEvent();
    const title = `"},"text":"${ada.email} asks`;
    const events = [
      makeChangeRequestEvent({ triggered_by: ada, change_request: { ...request, title } }, webhook),
      makeProtectionEvent({ triggered_by: ada }, webhook),
    ];
    for (const event of events) await recordEvent(replica.sql, event, uuidv7);
    await eraseEverywhere(ada.id, webhook);
    expect(await payloadsOf(webhook)).toEqual(
      events.map((event) =>
        JSON.stringify(
          payloadOf({ ...event, triggered_by: { ...ada, email: erasedEmail(ada.id) } }),
        ),
      ),
    );
  });

  it("replaces the address in the payloads of events that are received later", async () => {
    const webhook = await dispatch.newWebhook();
    const ada = { id: uuidv7(), email: "ada@example.com" };
    await eraseEverywhere(ada.id, webhook);
    await recordEvent(replica.sql, makeEvent({ triggered_by: ada }, webhook), uuidv7);
    expect((await payloadsOf(webhook)).join()).not.toContain(ada.email);
  });

  it("replaces the address in deliveries that are being created", async () => {
    const webhook = await dispatch.newWebhook();
    const ada = { id: uuidv7(), email: "ada@example.com" };
    const isHeld = Promise.withResolvers<void>();
    const isFree = Promise.withResolvers<void>();
    const holding = dispatch.admin.begin(async (tx) => {
      await tx`lock table deliveries in share mode`;
      isHeld.resolve();
      await isFree.promise;
    });
    const waiting = (count: number) =>
      eventually(async () => {
        const locks = await dispatch.admin`
          select from pg_locks
          where not granted and (locktype = 'advisory' or relation = 'deliveries'::regclass)
            and database = (select oid from pg_database where datname = current_database())`;
        return locks.length >= count;
      });
    await isHeld.promise;
    const recording = recordEvent(replica.sql, makeEvent({ triggered_by: ada }, webhook), uuidv7);
    await waiting(1);
    const erasing = eraseEverywhere(ada.id, webhook);
    await waiting(2);
    isFree.resolve();
    await Promise.all([holding, recording, erasing]);
    expect((await payloadsOf(webhook)).join()).not.toContain(ada.email);
  });
});

describe("the stream of events", () => {
  it("creates no second deliveries after it was deleted and refilled", async () => {
    const webhook = await dispatch.newWebhook();
    const events = Array.from({ length: 20 }, () => makeEvent({}, webhook));
    await dispatch.log.publish(...events);
    await dispatch.allEnded(webhook, 20);
    await dispatch.log.createAgain();
    await dispatch.log.publish(...events, makeEvent({}, webhook));
    await dispatch.log.isConsumed();
    await dispatch.allEnded(webhook, 21);
    expect(dispatch.received(webhook)).toHaveLength(21);
  });
});

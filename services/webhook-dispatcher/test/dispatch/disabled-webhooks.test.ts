import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { recordEvent } from "../../src/events/consume-events.ts";
import { changeWebhook, deleteWebhook } from "../../src/webhooks/webhook-store.ts";
import { makeEvent, openDispatch } from "./dispatch-fixture.ts";

/** Webhooks that are disabled or deleted while deliveries are open. */

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
const replica = await dispatch.startReplica({ plan: [50, 50, 50, 50, 50] });
afterEach(() => dispatch.receiver.reset());

const audit = () => ({ author: "webhook-dispatcher", newId: uuidv7, now: new Date() }) as const;

type Scope = { id: string; projectId: string };
const ways = {
  disabled: ({ id, projectId }: Scope) =>
    changeWebhook(
      replica.sql,
      { projectId, webhookId: id },
      (webhook) => ({ ...webhook, enabled: false, updatedAt: new Date() }),
      audit(),
    ),
  deleted: ({ id, projectId }: Scope) =>
    deleteWebhook(
      replica.sql,
      { projectId, webhookId: id },
      { permit: () => undefined, audit: audit() },
    ),
};

describe.each(Object.entries(ways))("a webhook that is %s", (_way, end) => {
  it("during an attempt gets no retry", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer({ kind: "answer", status: 500, delayMs: 200 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => dispatch.received(webhook).length === 1);
    await end(webhook);
    // Deleting a webhook cancels the delivery during the attempt.
    await eventually(async () => (await dispatch.deliveriesTo(webhook))[0]?.attempts_made === 1);
    const delivery = await dispatch.deliveryWith(webhook, "cancelled");
    expect(delivery).toMatchObject({ attempts_made: 1, next_attempt_at: null });
    expect(await dispatch.attemptsAt(delivery)).toHaveLength(1);
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("during a successful attempt has the delivery delivered", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer({ kind: "answer", status: 200, delayMs: 200 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => dispatch.received(webhook).length === 1);
    await end(webhook);
    await dispatch.deliveryWith(webhook, "delivered");
  });

  it("while events arrive and deliveries are sent has no open delivery in the end", async () => {
    const webhooks = await Promise.all(Array.from({ length: 10 }, () => dispatch.newWebhook()));
    await Promise.all(
      webhooks.map(async (webhook, index) => {
        if (index % 2 === 0)
          dispatch.receiver.answer({ kind: "answer", status: 500 }, webhook.path);
        const events = Array.from({ length: 20 }, () => makeEvent({}, webhook));
        const recorded = events.map((event) => recordEvent(replica.sql, event, uuidv7));
        replica.wake();
        await Promise.race(recorded);
        await end(webhook);
        await Promise.all(recorded);
        replica.wake();
      }),
    );
    const allEnded = async () => {
      const [row] = await dispatch.admin`
        select count(*)::integer as open from deliveries where finished_at is null`;
      return row?.open === 0;
    };
    await eventually(allEnded, { because: "no delivery is open" });
  });
});

describe("a webhook of a deleted project", () => {
  it("gets no attempt, and its delivery waits for the sweep", async () => {
    const webhook = await dispatch.newWebhook();
    await dispatch.deleteProject(webhook);
    await eventually(() => replica.isDeleted(webhook));
    await dispatch.putDeliveries(webhook, 1);
    replica.wake();
    const postponed = await eventually(async () => {
      const [delivery] = await dispatch.deliveriesTo(webhook);
      const waitMs = (delivery?.next_attempt_at?.getTime() ?? 0) - Date.now();
      return waitMs > 5 * 60_000 && delivery;
    });
    expect(postponed).toMatchObject({ status: "pending", attempts_made: 0 });
    expect(dispatch.received(webhook)).toEqual([]);
  });
});

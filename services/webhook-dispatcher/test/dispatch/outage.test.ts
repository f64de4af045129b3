import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { makeEvent, openDispatch } from "./dispatch-fixture.ts";

/** An outage of PostgreSQL that is longer than the time-out of claims. The processes stay alive. */

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
await Promise.all([1, 2].map(() => dispatch.startReplica({ claimTimeoutMs: 1_000 })));
afterEach(() => postgres.restore());

/** Makes the test's database unavailable to the dispatchers. The test connects as superuser and is not affected. */
const postgres = {
  async interrupt() {
    const { admin } = dispatch;
    await admin`
      do $$ begin execute format('alter database %I connection limit 0', current_database()); end $$`;
    await admin`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = 'webhooks_service'`;
  },
  async restore() {
    await dispatch.admin`
      do $$ begin execute format('alter database %I connection limit -1', current_database()); end $$`;
  },
};

const areExpired = async () => {
  const [row] = await dispatch.admin<[{ areExpired: boolean }]>`
    select bool_and(next_attempt_at <= now()) as "areExpired" from deliveries`;
  return row.areExpired;
};

describe("deliveries that were sent but could not be recorded in time", () => {
  it("are sent again, and every request is stored as an attempt", async () => {
    const projectId = uuidv7();
    const project = { projectId, organizationId: uuidv7() };
    // Fewer than the connections of a process, so that all of them wait to be recorded.
    const webhooks = await Promise.all([1, 2, 3, 4].map(() => dispatch.newWebhook(project)));
    const answered = Promise.withResolvers<void>();
    dispatch.receiver.answer({ kind: "answer", status: 200, after: answered.promise });
    await dispatch.log.publish(makeEvent({}, project));
    await eventually(() => webhooks.every((webhook) => dispatch.received(webhook).length > 0));
    await postgres.interrupt();
    answered.resolve();
    await eventually(areExpired, { because: "the outage is longer than the time-out" });
    // The lock delays recording but not claiming, so that the deliveries are claimed first.
    await dispatch.admin.begin(async (tx) => {
      await tx`lock table attempts in exclusive mode`;
      await postgres.restore();
      await eventually(() => webhooks.every((webhook) => dispatch.received(webhook).length > 1), {
        because: "the deliveries are sent again",
      });
    });
    for (const webhook of webhooks) {
      const delivery = await dispatch.deliveryWith(webhook, "delivered");
      await eventually(async () => {
        const attempts = await dispatch.attemptsAt(delivery);
        const [{ attempts_made } = {}] = await dispatch.deliveriesTo(webhook);
        const requests = dispatch.received(webhook).length;
        return attempts.length === requests && attempts_made === requests;
      });
    }
  });
});

import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { type Dispatch, makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** PostgreSQL is away for longer than claims hold, and no process dies. */
let dispatch: Dispatch;
const claimTimes = { lastsMs: 1_000, pollIntervalMs: 200 };

beforeAll(async () => {
  dispatch = await openDispatch();
  await Promise.all([1, 2].map(() => dispatch.startReplica({ claimTimes })));
});
afterEach(() => postgres.isBack());
afterAll(() => dispatch?.close());

/** The test's own database alone, and not for the test itself: a superuser is let in all the same. */
const postgres = {
  async isAway() {
    const { admin } = dispatch;
    await admin`
      do $$ begin execute format('alter database %I connection limit 0', current_database()); end $$`;
    await admin`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = 'webhooks_runtime'`;
  },
  async isBack() {
    await dispatch.admin`
      do $$ begin execute format('alter database %I connection limit -1', current_database()); end $$`;
  },
};

/** What a process that has died had claimed before it could send it. */
async function leaveExpiredClaim(): Promise<TestWebhook> {
  const webhook = await dispatch.newWebhook();
  await dispatch.putDeliveries(webhook, 1, { isFound: false });
  await dispatch.admin`
    update deliveries
    set status = 'delivering', next_attempt_at = null, claimed_by = ${uuidv7()},
      claimed_until = now() - interval '1 s'
    where webhook_id = ${webhook.id}`;
  return webhook;
}

const openDeliveries = () => dispatch.admin<{ isExpired: boolean }[]>`
  select coalesce(claimed_until < now(), false) as "isExpired"
  from deliveries where finished_at is null`;

describe("deliveries that were sent and could not be recorded", () => {
  it("are recorded by who sent them, while others are freed whose process has died", async () => {
    const projectId = uuidv7();
    const project = { projectId, organizationId: uuidv7() };
    // Fewer than a process has connections: all of them will wait to record.
    const webhooks = await Promise.all([1, 2, 3, 4].map(() => dispatch.newWebhook(project)));
    const answered = Promise.withResolvers<void>();
    dispatch.receiver.answer({ kind: "answer", status: 200, after: answered.promise });
    await dispatch.log.publish(makeEvent({}, project));
    await eventually(() => dispatch.receiver.requests.length === webhooks.length);
    await postgres.isAway();
    answered.resolve();
    await eventually(async () => (await openDeliveries()).every(({ isExpired }) => isExpired), {
      because: "the outage is longer than the claims",
    });
    const ofDeadProcess = await leaveExpiredClaim();
    // Recording is kept from coming first by a table that it needs and freeing does not.
    await dispatch.admin.begin(async (tx) => {
      await tx`lock table attempts in exclusive mode`;
      await postgres.isBack();
      await eventually(() => dispatch.received(ofDeadProcess).length > 0, {
        because: "a claim that is nobody's any more comes free",
      });
    });
    for (const webhook of [...webhooks, ofDeadProcess]) {
      const { attempts_made } = await dispatch.deliveryWith(webhook, "delivered");
      expect(attempts_made).toBe(1);
      expect(dispatch.received(webhook)).toHaveLength(1);
    }
  });
});

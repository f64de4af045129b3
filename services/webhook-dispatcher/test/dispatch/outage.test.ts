import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { type Dispatch, makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** An outage of PostgreSQL that is longer than the lifetime of claims. The processes stay alive. */
let dispatch: Dispatch;
const claimTimes = { lastsMs: 1_000, pollIntervalMs: 200 };

beforeAll(async () => {
  dispatch = await openDispatch();
  await Promise.all([1, 2].map(() => dispatch.startReplica({ claimTimes })));
});
afterEach(() => postgres.restore());
afterAll(() => dispatch?.close());

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

/** Inserts a delivery with the expired claim of a process that failed before it sent the delivery. */
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

describe("deliveries that were sent but could not be recorded", () => {
  it("are recorded by their process, while claims of a failed process are released", async () => {
    const projectId = uuidv7();
    const project = { projectId, organizationId: uuidv7() };
    // Fewer than the connections of a process, so that all of them wait to be recorded.
    const webhooks = await Promise.all([1, 2, 3, 4].map(() => dispatch.newWebhook(project)));
    const answered = Promise.withResolvers<void>();
    dispatch.receiver.answer({ kind: "answer", status: 200, after: answered.promise });
    await dispatch.log.publish(makeEvent({}, project));
    await eventually(() => dispatch.receiver.requests.length === webhooks.length);
    await postgres.interrupt();
    answered.resolve();
    await eventually(async () => (await openDeliveries()).every(({ isExpired }) => isExpired), {
      because: "the outage is longer than the claims",
    });
    const ofDeadProcess = await leaveExpiredClaim();
    // The lock delays recording but not the release of claims, so that the release comes first.
    await dispatch.admin.begin(async (tx) => {
      await tx`lock table attempts in exclusive mode`;
      await postgres.restore();
      await eventually(() => dispatch.received(ofDeadProcess).length > 0, {
        because: "the claim of the failed process is released",
      });
    });
    for (const webhook of [...webhooks, ofDeadProcess]) {
      const { attempts_made } = await dispatch.deliveryWith(webhook, "delivered");
      expect(attempts_made).toBe(1);
      expect(dispatch.received(webhook)).toHaveLength(1);
    }
  });
});

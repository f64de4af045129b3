import { createHmac } from "node:crypto";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { maintainSecrets } from "../src/webhooks/webhook-secrets.ts";
import { openDispatcher, type Replica, secretKey } from "./dispatcher-fixture.ts";

/** Secrets during a rotation of the keys that encrypt them. */
const [oldKey, newKey] = [secretKey("old", 1), secretKey("new", 2)];

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
/** Replicas with the configuration before, during and after the rotation. */
const before = await dispatcher.startReplica({ secretKeys: oldKey });
const during = await dispatcher.startReplica({ secretKeys: `${newKey},${oldKey}` });
const after = await dispatcher.startReplica({ secretKeys: newKey });
const tenant = await dispatcher.newTenant(before, during, after);
afterEach(async () => {
  dispatcher.receiver.reset();
  await dispatcher.admin`delete from webhooks`;
});

async function newWebhook() {
  const { body } = await before.call(tenant.path, {
    method: "POST",
    key: tenant.serverKey,
    body: {
      name: uuidv7(),
      url: dispatcher.receiver.url,
      events: ["flag.toggled"],
      secret: "whisper",
    },
  });
  return { id: body.id as string, path: `${tenant.path}/${body.id}` };
}

const patch = (replica: Replica, { path }: { path: string }, body: object) =>
  replica.call(path, { method: "PATCH", key: tenant.serverKey, body });

async function signsWith(replica: Replica, { path }: { path: string }, secret: string) {
  const { status } = await replica.call(`${path}/test`, { method: "POST", key: tenant.serverKey });
  if (status !== 200) return false;
  const { raw = "", headers } = dispatcher.receiver.requests.at(-1) ?? {};
  const expected = `sha256=${createHmac("sha256", secret).update(raw).digest("hex")}`;
  return headers?.["x-service-signature"] === expected;
}

async function rowOf({ id }: { id: string }) {
  const [row] = await dispatcher.admin`select * from webhooks where id = ${id}`;
  return row ?? {};
}

type Row = Awaited<ReturnType<typeof rowOf>>;

async function waitsForALock(): Promise<boolean> {
  const waiting = await dispatcher.admin`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  return waiting.count > 0;
}

describe("a rotation of keys", () => {
  it("has no gap if all secrets are re-encrypted before the old key is removed", async () => {
    const webhook = await newWebhook();
    expect(await signsWith(during, webhook, "whisper")).toBe(true);
    expect(await signsWith(after, webhook, "whisper")).toBe(false);
    await maintainSecrets(during);
    expect(await rowOf(webhook)).toMatchObject({ secret_key_id: "new" });
    expect(await signsWith(after, webhook, "whisper")).toBe(true);
  });

  it("re-encrypts the previous secret too, and changes neither updated_at nor the version", async () => {
    const webhook = await newWebhook();
    await patch(before, webhook, { secret: "shout", secret_overlap_seconds: 3_600 });
    const { updated_at: updatedAt, version } = await rowOf(webhook);
    await maintainSecrets(during);
    expect(await rowOf(webhook)).toMatchObject({
      secret_key_id: "new",
      previous_secret_key_id: "new",
      updated_at: updatedAt,
      version,
    });
  });

  it("continues over several batches, past secrets that cannot be decrypted", async () => {
    const webhook = await newWebhook();
    const { admin } = dispatcher;
    // These ids sort before the webhook's id.
    await admin`
      insert into webhooks (id, organization_id, project_id, name, url, events, enabled, secret,
        secret_key_id, created_at, updated_at)
      select ('00000000-0000-4000-8000-' || lpad(number::text, 12, '0'))::uuid, organization_id,
        gen_random_uuid(), name, url, events, enabled, secret, 'lost', created_at, updated_at
      from webhooks, generate_series(1, 250) as number where id = ${webhook.id}`;
    await maintainSecrets(during);
    expect(await rowOf(webhook)).toMatchObject({ secret_key_id: "new" });
    const [lost] = await admin`
      select count(*)::integer from webhooks where secret_key_id = 'lost'`;
    expect(lost?.count).toBe(250);
  });

  it("does not overwrite secrets that are changed concurrently", async () => {
    const { admin } = dispatcher;
    const webhook = await newWebhook();
    await patch(before, webhook, { secret: "shout", secret_overlap_seconds: 3_600 });
    const found = await rowOf(webhook);
    await patch(during, webhook, { secret: "roar", secret_overlap_seconds: 3_600 });
    const changed = await rowOf(webhook);
    const put = (
      sql: typeof admin,
      { secret, secret_key_id: keyId, previous_secret: previous }: Row,
    ) =>
      sql`update webhooks set secret = ${secret}, secret_key_id = ${keyId},
        previous_secret = ${previous} where id = ${webhook.id}`;
    await put(admin, found);
    const keeping = await admin.begin(async (tx) => {
      await put(tx as unknown as typeof admin, changed);
      const begun = maintainSecrets(during);
      await eventually(waitsForALock);
      return { begun };
    });
    await keeping.begun;
    expect(await rowOf(webhook)).toMatchObject({
      secret: changed.secret,
      secret_key_id: "new",
      previous_secret: changed.previous_secret,
    });
  });

  it("accepts a new secret for a webhook whose current one cannot be decrypted", async () => {
    const webhook = await newWebhook();
    const body = { secret: "shout", secret_overlap_seconds: 3_600 };
    expect((await patch(after, webhook, body)).status).toBe(200);
    expect(await rowOf(webhook)).toMatchObject({ secret_key_id: "new", previous_secret: null });
    expect(await signsWith(after, webhook, "shout")).toBe(true);
  });
});

describe("the previous secret", () => {
  it("is deleted when its overlap has ended, and not before", async () => {
    const [ended, open] = [await newWebhook(), await newWebhook()];
    for (const webhook of [ended, open])
      await patch(before, webhook, { secret: "shout", secret_overlap_seconds: 3_600 });
    await dispatcher.admin`
      update webhooks set previous_secret_ends_at = now() - interval '1 second'
      where id = ${ended.id}`;
    await maintainSecrets(before);
    expect(await rowOf(ended)).toMatchObject({ previous_secret: null });
    expect(await rowOf(open)).toMatchObject({ previous_secret_key_id: "old" });
  });
});

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { eventually, type ReceivedRequest, startReceiver } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, sectionOf, tableOf } from "../../src/stories/page-blocks.ts";
import { openPageReceivers, type PageReceivers } from "../../src/stories/page-receiver.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";
import { must, type Tenant } from "../../src/system/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const page = pageOf("docs/webhooks.md");

/** Tests that webhooks work as docs/webhooks.md describes, and that its receivers are correct. */
export function describeWebhooks(given: () => PageSystem): void {
  let tenant: Tenant;
  let receivers: PageReceivers;
  const recorders: { close(): Promise<void> }[] = [];

  beforeAll(async () => {
    receivers = openPageReceivers(page);
    tenant = await given().createTenant("Webhooks");
  });
  afterAll(async () => {
    await Promise.all(recorders.map((recorder) => recorder.close()));
    await receivers?.close();
  });

  const webhooksUrl = () => `${given().gatewayUrl}/api/v1/projects/${tenant.projectId}/webhooks`;

  async function newWebhook(url: string, secret: string | null): Promise<string> {
    const name = `${url} ${secret}`;
    const body = { name, url, events: ["flag.created"], secret };
    const { id } = await must(webhooksUrl(), { method: "POST", key: tenant.serverKey, body });
    return `${webhooksUrl()}/${id}`;
  }

  /** Returns the request of a real delivery. */
  async function recordDelivery(secret: string | null, flagKey: string): Promise<ReceivedRequest> {
    const recorder = await startReceiver();
    recorders.push(recorder);
    await newWebhook(recorder.url, secret);
    const body = { key: flagKey, name: "Größe ☃" };
    await must(`${given().gatewayUrl}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body,
    });
    return eventually(async () => recorder.requests[0]);
  }

  it("docs/webhooks.md works when followed twice", async () => {
    const [, secret = ""] = /WEBHOOK_SECRET='([^']+)' node receiver\.mjs/.exec(page) ?? [];
    const receiver = await receivers.start("verify.mjs", secret);
    const shell = given().openShell(tenant);
    const followed = page.replaceAll("http://127.0.0.1:8090", receiver.url);
    // Otherwise the page would disable the flag, and the event could wait until the next webhook exists, and arrive there.
    // The log is read in order, so the delivery of a later event shows that this one was read.
    const disable = async () => {
      await shell.run(
        `curl -fsS -X PATCH "$BASE_URL/api/v1/flags/$FLAG_ID" -H "Authorization: Bearer $SERVER_KEY" -H 'Content-Type: application/json' -d '{ "enabled": false }' > /dev/null`,
      );
      await recordDelivery(null, "created-later");
    };
    expect(await followPage(shell, followed, disable)).toBeGreaterThan(7);
    // Each time, the test arrives twice, with new ids. The flag is printed once, although it was redelivered.
    const printed = [
      "flag.toggled: webhook-test in webhook-test is on",
      "flag.toggled: night-mode in production is on",
      "flag.toggled: webhook-test in webhook-test is on",
    ];
    await eventually(async () => receiver.printed.length >= 2 * printed.length);
    expect(receiver.printed).toEqual([...printed, ...printed]);
  });

  describe.each(["verify.mjs", "verify-plain.mjs", "verify-library.mjs"])("its %s", (verify) => {
    it.each([
      ["a text", "any text of the customer's"],
      ["a text beyond ASCII", "Schlüssel 🔑"],
      [
        "a key in the form of Standard Webhooks",
        `whsec_${Buffer.alloc(32, 250).toString("base64")}`,
      ],
    ])("accepts what is signed with %s, and rejects other signatures", async (_, secret) => {
      const receiver = await receivers.start(verify, secret);
      const webhook = await newWebhook(receiver.url, secret);
      const test = () => must(`${webhook}/test`, { method: "POST", key: tenant.serverKey });
      expect(await test()).toMatchObject({ success: true, status_code: 204 });
      await must(webhook, { method: "PATCH", key: tenant.serverKey, body: { secret: "another" } });
      expect(await test()).toMatchObject({ success: false, status_code: 401 });
      await must(webhook, { method: "PATCH", key: tenant.serverKey, body: { secret: null } });
      expect(await test()).toMatchObject({ success: false, status_code: 401 });
      await must(webhook, { method: "DELETE", key: tenant.serverKey });
    });

    it("accepts a real delivery once, and rejects altered ones", async () => {
      const flagKey = `real-${verify.replace(".mjs", "")}`;
      const secret = "a secret";
      const delivery = await recordDelivery(secret, flagKey);
      const receiver = await receivers.start(verify, secret);
      const altered = Buffer.from(
        delivery.raw.toString().replace('"enabled":false', '"enabled":true '),
      );
      expect(altered).not.toEqual(delivery.raw);
      expect(await replay(receiver.url, delivery, altered)).toBe(401);
      expect(await replay(receiver.url, delivery, delivery.raw)).toBe(204);
      expect(await replay(receiver.url, delivery, delivery.raw)).toBe(204);
      await eventually(async () => receiver.printed.length > 0);
      expect(receiver.printed).toEqual([`flag.created: ${flagKey} in production is off`]);
    });
  });

  it.each(["verify.mjs", "verify-library.mjs"])("its %s rejects old recordings", async (verify) => {
    const secret = "a secret";
    const receiver = await receivers.start(verify, secret);
    const delivery = await recordDelivery(secret, `old-${verify.replace(".mjs", "")}`);
    expect(await replay(receiver.url, signedAgain(delivery, secret, 240), delivery.raw)).toBe(204);
    expect(await replay(receiver.url, signedAgain(delivery, secret, 360), delivery.raw)).toBe(401);
  });

  it("docs/runbooks.md has queries for overdue webhooks, failed attempts and keys in use", async () => {
    const [due = "", failing = "", keys = ""] = blocksOf(
      sectionOf(pageOf("docs/runbooks.md"), "Webhooks are late or fail"),
    ).flatMap(({ kind, text }) => (kind === "sql" ? [text] : []));
    const webhook = await newWebhook("http://127.0.0.1:2/nobody", "a secret");
    const body = { key: "fails", name: "Fails" };
    await must(`${given().gatewayUrl}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body,
    });
    const failures = await eventually(async () => {
      const rows = await given().system.sql.unsafe(failing);
      return rows.length > 0 ? rows : undefined;
    });
    const { id } = await must(webhook, { key: tenant.serverKey });
    expect(failures.map((row) => ({ ...row }))).toEqual([
      { webhook_id: id, status_code: null, error: "connection refused", count: "1" },
    ]);
    expect(await given().system.sql.unsafe(keys)).toMatchObject([{ key_id: "tests" }]);
    expect(await given().system.sql.unsafe(due)).toMatchObject([{ webhooks: "0" }]);
  });

  it("dispatchers read the event log again after their consumer was deleted", async () => {
    const { headers } = await recordDelivery("a secret", "read-again");
    const eventOf = (id: string) =>
      given().system.sql`select event_id from webhooks.deliveries where id = ${id}`;
    const [event] = await eventOf(String(headers["webhook-id"]));
    const count = async () =>
      (
        await given().system
          .sql`select event_id, count(*) from webhooks.deliveries group by 1 order by 1`
      ).map((row) => ({ ...row }));
    const before = await count();
    // Simulates an event that was dead-lettered.
    await given().system.sql`delete from webhooks.deliveries where event_id = ${event?.event_id}`;
    await given().system.sql`delete from webhooks.inbox where event_id = ${event?.event_id}`;
    await removeConsumer(given().system.nats.url);
    await eventually(async () => (await count()).length === before.length);
    expect(await count()).toEqual(before);
  });

  describe("given docs/configuration.md", () => {
    it("docs/webhooks.md has the same retry delays", () => {
      const delays = tableOf(page, "Retry |").map(([, delay = ""]) =>
        delay.replace(/ (\w)\w*$/, "$1"),
      );
      const [, configured] =
        /`WEBHOOK_RETRY_DELAYS` \| (\S+)/.exec(pageOf("docs/configuration.md")) ?? [];
      expect(delays.join(",")).toBe(configured);
    });
  });
}

/** Returns the delivery as it would have been signed some seconds ago. */
function signedAgain(
  delivery: ReceivedRequest,
  secret: string,
  secondsAgo: number,
): ReceivedRequest {
  const at = String(Math.floor(Date.now() / 1_000) - secondsAgo);
  const hmac = createHmac("sha256", secret);
  hmac.update(`${delivery.headers["webhook-id"]}.${at}.`).update(delivery.raw);
  const signed = {
    "webhook-timestamp": at,
    "webhook-signature": `v1,${hmac.digest("base64")}`,
  };
  return { ...delivery, headers: { ...delivery.headers, ...signed } };
}

async function removeConsumer(natsUrl: string): Promise<void> {
  const connection = await connect({ servers: natsUrl });
  const manager = await jetstreamManager(connection);
  await manager.consumers.delete("FLAG_EVENTS", "webhook-dispatcher");
  await connection.close();
}

/** Sends the headers of a delivery again with a body. Returns the status. */
async function replay(url: string, { headers }: ReceivedRequest, body: Buffer): Promise<number> {
  const kept = Object.entries(headers).filter(([name]) =>
    /^(?:webhook|x-service|content-type)/.test(name),
  );
  const answer = await fetch(url, {
    method: "POST",
    headers: Object.fromEntries(kept) as Record<string, string>,
    body: new Uint8Array(body),
  });
  return answer.status;
}

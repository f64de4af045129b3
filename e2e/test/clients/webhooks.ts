import { createHmac } from "node:crypto";
import {
  type Called,
  call,
  eventually,
  type ReceivedRequest,
  type Receiver,
  type ServiceProcess,
  startReceiver,
} from "@halyard/testing";
import { beforeAll, expect, it } from "@jest/globals";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { faultsOfSignatures } from "../../src/checks/webhook-agreement.ts";
import { createWebhook } from "../../src/stories/webhook-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { System } from "../../src/system/system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** All operations on webhooks, as a customer uses them: through the gateway, step by step. */
const everything = [
  "flag.created",
  "flag.updated",
  "flag.deleted",
  "flag.toggled",
  "flag_state.updated",
];
const firstSecret = "the first secret";
const secondSecret = `whsec_${Buffer.from("the second secret, for the standard").toString("base64")}`;

export function describeWebhooks(given: () => ClientSystem): void {
  let system: System;
  let gateway: ServiceProcess;
  let receiver: Receiver;
  let tenant: Tenant;
  let webhook: string;

  beforeAll(async () => {
    ({ system, gateway } = given());
    receiver = await startReceiver();
    system.endsWithSystem(receiver.close);
    tenant = await createTenant(gateway.url, { name: "Webhooks" });
    const id = await createWebhook(gateway.url, tenant, {
      name: "Everything",
      url: `${receiver.url}/hooks?from=halyard`,
      events: everything,
      secret: firstSecret,
    });
    webhook = `${gateway.url}/api/v1/projects/${tenant.projectId}/webhooks/${id}`;
  });

  const ask = (url: string, method = "GET", body?: object) =>
    must(url, { method, key: tenant.serverKey, ...(body && { body }) });
  const flags = () => `${gateway.url}/api/v1/flags`;
  const ofEvent = (event: string) =>
    receiver.requests.filter(({ headers }) => headers["x-service-event"] === event);

  /** Waits for the only request about an event, and returns it. */
  const requestFor = (event: string) =>
    eventually(() => {
      const [request, ...others] = ofEvent(event);
      if (others.length > 0) throw new Error(`${event} was sent more than once`);
      return request;
    });

  const deliveries = async (query = ""): Promise<Called["body"][]> =>
    (await ask(`${webhook}/deliveries${query}`)).deliveries;
  const settled = (count: number) =>
    eventually(async () => {
      const all = await deliveries();
      return all.length === count && all.every(({ status }) => status === "delivered");
    });

  it("is in the project's audit log, with a masked URL and the API key", async () => {
    const created = await eventually(async () => {
      const { changes } = await ask(`${gateway.url}/api/v1/projects/${tenant.projectId}/changes`);
      return changes.find(({ action }: { action: string }) => action === "webhook_created");
    });
    expect(created).toMatchObject({
      webhook_id: webhook.split("/").at(-1),
      actor: { id: tenant.userId, email: "ada@example.com" },
      api_key_id: tenant.serverKey.split("_")[1],
      after: { name: "Everything", url: `${receiver.url}/***`, events: everything },
    });
    expect(JSON.stringify(created)).not.toContain(firstSecret);
  });

  it("sends each kind of change once, with what has changed and both signatures", async () => {
    const flag = await ask(flags(), "POST", { key: "dark-mode", name: "Dark mode" });
    await ask(`${flags()}/${flag.id}`, "PATCH", { name: "Night" });
    await ask(`${flags()}/${flag.id}`, "PATCH", { enabled: true });
    await ask(`${flags()}/${flag.id}`, "PATCH", { rollout_percentage: 40 });
    await call(`${flags()}/${flag.id}`, { method: "DELETE", key: tenant.serverKey });
    for (const event of everything) await requestFor(event);
    await settled(everything.length);

    const payloads = Object.fromEntries(
      everything.map((event) => [event, JSON.parse(ofEvent(event)[0]?.raw.toString() ?? "")]),
    );
    const common = {
      timestamp: expect.any(String),
      environment: { id: tenant.environmentId, name: "production" },
      triggered_by: { id: tenant.userId, email: "ada@example.com" },
    };
    const about = (name: string, enabled: boolean) => ({
      ...common,
      flag: { id: flag.id, key: "dark-mode", name, enabled },
    });
    const state = { enabled: true, rollout_percentage: 40, targeting_rules: [] };
    expect(payloads).toEqual({
      "flag.created": { event: "flag.created", ...about("Dark mode", false) },
      "flag.updated": {
        event: "flag.updated",
        ...about("Night", false),
        changes: { name: { from: "Dark mode", to: "Night" } },
      },
      "flag.toggled": { event: "flag.toggled", ...about("Night", true) },
      "flag_state.updated": { event: "flag_state.updated", ...about("Night", true), state },
      "flag.deleted": { event: "flag.deleted", ...about("Night", true) },
    });
    expect(receiver.requests).toHaveLength(everything.length);
    for (const request of receiver.requests) {
      expect(faultsOfSignatures(request, firstSecret)).toEqual([]);
      expect(request).toMatchObject({
        method: "POST",
        path: "/hooks?from=halyard",
        headers: { "content-type": "application/json" },
      });
    }
  });

  it("lists deliveries, the newest first, and returns one with its attempt", async () => {
    const all = await deliveries();
    const ids = receiver.requests.map(({ headers }) => headers["x-service-delivery"]);
    expect(all.map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(all.map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
    expect(await deliveries("?status=failed")).toEqual([]);
    const page = await ask(`${webhook}/deliveries?limit=3`);
    const rest = await ask(`${webhook}/deliveries?limit=3&cursor=${page.next_cursor}`);
    expect([...page.deliveries, ...rest.deliveries]).toEqual(all);
    expect(rest.next_cursor).toBeNull();

    const toggled = await requestFor("flag.toggled");
    const one = await ask(`${webhook}/deliveries/${toggled.headers["x-service-delivery"]}`);
    expect(one.payload).toEqual(JSON.parse(toggled.raw.toString()));
    expect(one.attempts).toEqual([
      {
        attempted_at: expect.any(String),
        status_code: 200,
        duration_ms: expect.any(Number),
        error: null,
        response_body: "",
      },
    ]);
  });

  it("sends a test on request, which is not a delivery", async () => {
    const before = receiver.requests.length;
    receiver.answer({ kind: "answer", status: 418 });
    const tested = await ask(`${webhook}/test`, "POST");
    expect(tested).toEqual({
      success: false,
      status_code: 418,
      response_time_ms: expect.any(Number),
      error: null,
      response_body: expect.any(String),
    });
    const [request, ...others] = receiver.requests.slice(before);
    expect(others).toEqual([]);
    expect(faultsOfSignatures(request as ReceivedRequest, firstSecret)).toEqual([]);
    expect(await deliveries()).toHaveLength(everything.length);
    receiver.reset();
  });

  it("delivers again on request: the same payload, under the same id", async () => {
    const [newest] = await deliveries();
    const original = await ask(`${webhook}/deliveries/${newest.id}`);
    expect((await ask(`${webhook}/deliveries/${newest.id}/redeliver`, "POST")).id).toBe(newest.id);
    const again = await requestFor(newest.event);
    expect(again.headers["x-service-delivery"]).toBe(newest.id);
    expect(JSON.parse(again.raw.toString())).toEqual(original.payload);
    await settled(everything.length);
    expect((await ask(`${webhook}/deliveries/${newest.id}`)).attempts).toHaveLength(2);
    receiver.reset();
  });

  it("signs with the old and the new secret during the overlap, then with the new one only", async () => {
    await ask(webhook, "PATCH", { secret: secondSecret, secret_overlap_seconds: 3_600 });
    await ask(flags(), "POST", { key: "during", name: "During" });
    const during = await requestFor("flag.created");
    expect(during.headers["webhook-signature"]).toMatch(/^v1,\S+ v1,\S+$/);
    expect(standardAccepts(during, firstSecret)).toBe(true);
    expect(standardAccepts(during, secondSecret)).toBe(true);
    expect(during.headers["x-service-signature"]).toBe(plainSignature(during, secondSecret));

    receiver.reset();
    await ask(webhook, "PATCH", { secret: secondSecret, secret_overlap_seconds: 0 });
    await ask(flags(), "POST", { key: "after", name: "After" });
    const after = await requestFor("flag.created");
    expect(standardAccepts(after, firstSecret)).toBe(false);
    expect(standardAccepts(after, secondSecret)).toBe(true);
    await settled(everything.length + 2);
    receiver.reset();
  });

  it("sends nothing while it is disabled, and nothing from that time afterwards", async () => {
    await ask(webhook, "PATCH", { enabled: false });
    await ask(flags(), "POST", { key: "unheard", name: "Unheard" });
    await awaitAllRead();
    await ask(webhook, "PATCH", { enabled: true });
    await ask(flags(), "POST", { key: "heard", name: "Heard" });
    const heard = await requestFor("flag.created");
    expect(JSON.parse(heard.raw.toString()).flag.key).toBe("heard");
    await settled(everything.length + 3);
    receiver.reset();
  });

  it("is deleted together with its deliveries", async () => {
    const [newest] = await deliveries();
    const gone = { key: tenant.serverKey };
    expect((await call(webhook, { ...gone, method: "DELETE" })).status).toBe(204);
    await ask(flags(), "POST", { key: "too-late", name: "Too late" });
    await awaitAllRead();
    for (const path of ["", "/deliveries", `/deliveries/${newest.id}`])
      expect((await call(`${webhook}${path}`, gone)).status).toBe(404);
    expect(receiver.requests).toEqual([]);
  });

  /** Waits until the dispatcher has created the deliveries of all changes so far. */
  async function awaitAllRead(): Promise<void> {
    const [newest] = await system.sql<{ id: string }[]>`
      select message_id::text as id from outbox where stream = 'events' order by id desc limit 1`;
    await eventually(async () => {
      const rows = await system.sql`
        select from webhooks.inbox where event_id = ${newest?.id ?? null}`;
      return rows.length === 1;
    });
  }
}

const plainSignature = ({ raw }: ReceivedRequest, secret: string) =>
  `sha256=${createHmac("sha256", secret).update(raw).digest("hex")}`;

function standardAccepts({ raw, headers }: ReceivedRequest, secret: string): boolean {
  try {
    const isStandard = secret.startsWith("whsec_");
    const webhook = new StandardWebhook(secret, isStandard ? {} : { format: "raw" });
    webhook.verify(raw, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

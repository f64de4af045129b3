import { type AuditRecorded, auditStream, type FlagEvent, usageStream } from "@halyard/contracts";
import { ensureAudit, ensureFlagEvents, ensureUsage, publishSigned } from "@halyard/jetstream";
import {
  call,
  eventually,
  type ServiceProcess,
  startServiceProcess,
  testMessageSigner,
} from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { v7 as uuidv7 } from "uuid";
import { openDispatcher, secretKey } from "./dispatcher-fixture.ts";

/** The dispatcher as a separate process, configured by its environment. */
let service: ServiceProcess | undefined;

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const tenant = await dispatcher.newTenant();
afterEach(async () => {
  await service?.kill();
  service = undefined;
  dispatcher.receiver.reset();
});

const environment = () => ({
  POSTGRES_URL: dispatcher.postgresUrl,
  NATS_URL: dispatcher.natsUrl,
  WEBHOOK_SECRET_KEYS: secretKey("first", 1),
  WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
  WEBHOOK_RETRY_DELAYS: "20ms,20ms",
});

async function start(settings: Record<string, string> = {}): Promise<ServiceProcess> {
  const started = await startServiceProcess("webhook-dispatcher", {
    ...environment(),
    ...settings,
  });
  service = started;
  await eventually(async () => (await call(`${started.url}/readyz`)).status === 200);
  return started;
}

async function newWebhook({ url }: ServiceProcess): Promise<string> {
  const body = {
    name: uuidv7(),
    url: `${dispatcher.receiver.url}/hooks`,
    events: ["flag.toggled"],
  };
  const created = await call(url + tenant.path, { method: "POST", key: tenant.serverKey, body });
  expect(created.status).toBe(201);
  return `${url}${created.headers.get("location")}`;
}

async function publishEvent(): Promise<FlagEvent> {
  const event = anEvent();
  const connection = await connect({ servers: dispatcher.natsUrl });
  await ensureFlagEvents(await jetstreamManager(connection), 1);
  await publishSigned(jetstream(connection), testMessageSigner("management"), {
    subject: event.event,
    payload: JSON.stringify(event),
  });
  await connection.close();
  return event;
}

function anEvent(): FlagEvent {
  const state = { enabled: true, rollout_percentage: 100, targeting_rules: [] };
  return {
    id: uuidv7(),
    event: "flag.toggled",
    timestamp: new Date().toISOString(),
    version: 2,
    organization_id: tenant.organizationId,
    project_id: tenant.projectId,
    flag: { id: uuidv7(), key: "dark-mode", name: "Dark mode", description: "", type: "release" },
    environment: { id: tenant.environmentId, name: "production" },
    state,
    state_before: { ...state, enabled: false },
    triggered_by: { id: tenant.userId, email: "someone@example.com" },
    cause: "manual",
  };
}

/** Waits until the webhook's only delivery has this status and number of attempts. */
const deliveryWith = (webhook: string, status: string, attempts: number) =>
  eventually(
    async () => {
      const { body } = await call(`${webhook}/deliveries`, { key: tenant.serverKey });
      const [delivery] = body.deliveries;
      return delivery?.status === status && delivery.attempts_made === attempts && delivery;
    },
    { because: `the delivery is ${status} after ${attempts} attempts` },
  );

describe("an event", () => {
  it("is attempted until no retries are left, then once for each requested redelivery", async () => {
    const webhook = await newWebhook(await start());
    dispatcher.receiver.answer({ kind: "answer", status: 500, body: "not now" });
    const event = await publishEvent();
    const failed = await deliveryWith(webhook, "failed", 3);
    const delivery = `${webhook}/deliveries/${failed.id}`;
    const redeliver = async () => {
      const options = { method: "POST", key: tenant.serverKey };
      expect((await call(`${delivery}/redeliver`, options)).status).toBe(202);
    };

    await redeliver();
    await deliveryWith(webhook, "failed", 4);
    dispatcher.receiver.answer({ kind: "answer", status: 200, body: "thanks" });
    await redeliver();
    await deliveryWith(webhook, "delivered", 5);

    const { body } = await call(delivery, { key: tenant.serverKey });
    const statuses = body.attempts.map((attempt: { status_code: number }) => attempt.status_code);
    expect(statuses).toEqual([500, 500, 500, 500, 200]);
    expect(body.attempts.at(-1).response_body).toBe("thanks");
    expect(body).toMatchObject({ event_id: event.id, payload: { flag: { key: "dark-mode" } } });
    const { requests } = dispatcher.receiver;
    expect(requests).toHaveLength(5);
    expect(new Set(requests.map(({ raw }) => raw.toString())).size).toBe(1);
    for (const { headers } of requests) expect(headers["x-service-delivery"]).toBe(failed.id);
  });

  it("is not sent to a disabled webhook, not even after the webhook is enabled again", async () => {
    const webhook = await newWebhook(await start());
    const set = (enabled: boolean) =>
      call(webhook, { method: "PATCH", key: tenant.serverKey, body: { enabled } });
    await set(false);
    await publishEvent();
    const witness = await newWebhook(service as ServiceProcess);
    await publishEvent();
    await deliveryWith(witness, "delivered", 1);
    await set(true);
    const { body } = await call(`${webhook}/deliveries`, { key: tenant.serverKey });
    expect(body.deliveries).toEqual([]);
  });
});

describe("the process", () => {
  it("shuts down cleanly while a test waits for a hanging target", async () => {
    const { url, signal, exited } = await start();
    const webhook = await newWebhook({ url } as ServiceProcess);
    dispatcher.receiver.answer({ kind: "hang" });
    const test = call(`${webhook}/test`, { method: "POST", key: tenant.serverKey });
    await eventually(() => dispatcher.receiver.hanging() === 1);
    signal("SIGTERM");
    expect((await test).status).toBe(503);
    expect(await exited).toBe(0);
  });

  it.each([
    { name: "no key", keys: undefined },
    { name: "a short key", keys: "first:c2hvcnQ=" },
    { name: "two keys with one name", keys: `${secretKey("a", 1)},${secretKey("a", 2)}` },
  ])(
    "does not start if WEBHOOK_SECRET_KEYS contains $name, and does not print the keys",
    async ({ keys }) => {
      const { WEBHOOK_SECRET_KEYS: _usual, ...rest } = environment();
      const given = keys === undefined ? rest : { ...rest, WEBHOOK_SECRET_KEYS: keys };
      const start = startServiceProcess("webhook-dispatcher", given);
      const error = await start.then(
        () => undefined,
        (reason: Error) => reason.message,
      );
      expect(error).toContain("WEBHOOK_SECRET_KEYS");
      if (keys !== undefined) expect(error).not.toContain(keys.split(":")[1]);
    },
  );
});

describe("given requests with API keys", () => {
  it("publishes the last use of the keys, and answers 429 above the rate limit", async () => {
    const { url } = await start({ KEY_REQUESTS_PER_SECOND: "0.001", KEY_REQUESTS_BURST: "2" });
    const connection = await connect({ servers: dispatcher.natsUrl });
    try {
      const manager = await jetstreamManager(connection);
      await ensureUsage(manager, 1);
      const statusOf = async (key: string) => (await call(url + tenant.path, { key })).status;
      for (const status of [200, 200, 429]) expect(await statusOf(tenant.serverKey)).toBe(status);
      for (const status of [401, 401, 429]) expect(await statusOf("wrong")).toBe(status);
      const message = await eventually(async () => {
        const stored = await manager.streams.getMessage(usageStream.name, {
          last_by_subj: usageStream.lastSeen.subject,
        });
        return stored ?? undefined;
      });
      const keyId = tenant.serverKey.split("_")[1];
      expect(message.json()).toMatchObject({ keys: [{ key_id: keyId }] });
    } finally {
      await connection.close();
    }
  });
});

describe("given a process that is killed between the commit of a change and its publication", () => {
  it("publishes the change once, from the next process", async () => {
    // Without its stream, nothing can be published.
    const killed = await start();
    const webhook = await newWebhook(killed);
    await killed.kill();
    const connection = await connect({ servers: dispatcher.natsUrl });
    try {
      const manager = await jetstreamManager(connection);
      await ensureAudit(manager, 1);
      const next = await start();
      const unsent = () => dispatcher.admin`select from audit_outbox where stream_sequence is null`;
      await eventually(async () => (await unsent()).length === 0);
      const witness = await newWebhook(next);
      await eventually(async () => (await unsent()).length === 0);
      const published = await stored(manager);
      for (const path of [webhook, witness])
        expect(published.filter(({ webhook_id }) => path.endsWith(webhook_id ?? ""))).toHaveLength(
          1,
        );
    } finally {
      await connection.close();
    }
  });

  async function stored(manager: JetStreamManager): Promise<AuditRecorded[]> {
    const { state } = await manager.streams.info(auditStream.name);
    const sequences = Array.from({ length: state.messages }, (_, index) => state.first_seq + index);
    return Promise.all(
      sequences.map(async (seq) => {
        const message = await manager.streams.getMessage(auditStream.name, { seq });
        return message?.json() as AuditRecorded;
      }),
    );
  }
});

describe("private targets", () => {
  const warning = "WEBHOOK_ALLOW_PRIVATE_TARGETS is enabled in production";
  const production = { HALYARD_MODE: "production", HOST: "127.0.0.1" };

  it.each([
    ["cause a warning if production allows them", production, true],
    [
      "cause no warning if production does not allow them",
      { ...production, WEBHOOK_ALLOW_PRIVATE_TARGETS: "false" },
      false,
    ],
    ["cause no warning in development", {}, false],
  ])("%s", async (_what, settings, isWarned) => {
    const { log } = await start(settings);
    expect(log().includes(warning)).toBe(isWarned);
  });
});

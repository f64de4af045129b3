import { createHmac } from "node:crypto";
import { compileCheck, EventName, WebhookPayload } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { v7 as uuidv7 } from "uuid";
import { openDispatcher, testsPerOrganization } from "./dispatcher-fixture.ts";

/** Test payloads, sent to a real receiver with various responses. */

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const replica = await dispatcher.startReplica();
const tenant = await dispatcher.newTenant(replica);
afterEach(() => dispatcher.receiver.reset());

async function newWebhook(fields: object = {}, owner = tenant) {
  const { status, body } = await replica.call(owner.path, {
    method: "POST",
    key: owner.serverKey,
    body: {
      name: uuidv7(),
      url: `${dispatcher.receiver.url}/hooks`,
      events: ["flag.toggled"],
      ...fields,
    },
  });
  expect(status).toBe(201);
  return { id: body.id as string, path: `${owner.path}/${body.id}` };
}

const test = ({ path }: { path: string }, key = tenant.serverKey, by = replica) =>
  by.call(`${path}/test`, { method: "POST", key });

const checkPayload = compileCheck(WebhookPayload);

describe("testing a webhook", () => {
  it("sends a request in the format and with the signatures of a delivery", async () => {
    const webhook = await newWebhook({ secret: "whisper" });
    const { status, body } = await test(webhook);
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      status_code: 200,
      response_time_ms: expect.any(Number),
      error: null,
      response_body: "",
    });
    const [request, ...others] = dispatcher.receiver.requests;
    expect(others).toEqual([]);
    const raw = request?.raw ?? Buffer.alloc(0);
    expect(request).toMatchObject({
      method: "POST",
      path: "/hooks",
      headers: {
        "content-type": "application/json",
        "user-agent": expect.stringMatching(/^Halyard\//),
        "x-service-event": "flag.toggled",
        "x-service-delivery": expect.any(String),
        "x-service-signature": `sha256=${createHmac("sha256", "whisper").update(raw).digest("hex")}`,
      },
    });
    expect(request?.headers["webhook-id"]).toBe(request?.headers["x-service-delivery"]);
    const verifier = new StandardWebhook("whisper", { format: "raw" });
    const headers = request?.headers as Record<string, string>;
    expect(verifier.verify(raw.toString(), headers)).toMatchObject({
      event: "flag.toggled",
      triggered_by: { id: tenant.userId },
    });
  });

  it.each(EventName.options)(
    "sends a complete payload of %s to a webhook that subscribes to it",
    async (event) => {
      await test(await newWebhook({ events: [event] }));
      const payload = JSON.parse(`${dispatcher.receiver.requests[0]?.raw}`);
      expect(checkPayload(payload)).toMatchObject({ ok: true });
      expect(payload.event).toBe(event);
      expect("state" in payload).toBe(event === "flag_state.updated");
      expect("changes" in payload).toBe(event === "flag.updated");
    },
  );

  it("sends no signature without a secret", async () => {
    await test(await newWebhook());
    const headers = dispatcher.receiver.requests[0]?.headers ?? {};
    expect(headers).not.toHaveProperty("x-service-signature");
    expect(headers).not.toHaveProperty("webhook-signature");
  });

  it("signs with both secrets during the overlap, and with the new one only afterwards", async () => {
    const webhook = await newWebhook({ secret: "old" });
    const body = { secret: "new", secret_overlap_seconds: 3_600 };
    await replica.call(webhook.path, { method: "PATCH", key: tenant.serverKey, body });
    await test(webhook);
    await dispatcher.admin`
      update webhooks set previous_secret_ends_at = now() - interval '1 second'
      where id = ${webhook.id}`;
    await test(webhook);
    const accepted = (index: number, secret: string) => {
      const { raw, headers } = dispatcher.receiver.requests[index] ?? {};
      const verifier = new StandardWebhook(secret, { format: "raw" });
      return () => verifier.verify(`${raw}`, headers as Record<string, string>);
    };
    expect(accepted(0, "old")).not.toThrow();
    expect(accepted(0, "new")).not.toThrow();
    expect(accepted(1, "old")).toThrow();
    expect(accepted(1, "new")).not.toThrow();
  });

  it.each([204, 299])("counts %d as a success", async (status) => {
    dispatcher.receiver.answer({ kind: "answer", status });
    const { body } = await test(await newWebhook());
    expect(body).toMatchObject({ success: true, status_code: status });
  });

  it.each([
    { status: 301, headers: { location: "/elsewhere" } },
    { status: 400 },
    { status: 410 },
    { status: 429, headers: { "retry-after": "60" } },
    { status: 500 },
  ])("counts $status as a failure, and follows no redirect", async (given) => {
    dispatcher.receiver.answer({ kind: "answer", ...given });
    const webhook = await newWebhook();
    expect(await test(webhook)).toMatchObject({
      status: 200,
      body: { success: false, status_code: given.status },
    });
    expect(dispatcher.receiver.requests).toHaveLength(1);
    const { body } = await replica.call(webhook.path, { key: tenant.serverKey });
    expect(body.enabled).toBe(true);
  });

  it("returns the reason and the status 0 if the target closes the connection or does not listen", async () => {
    dispatcher.receiver.answer({ kind: "close", when: "at once" });
    const failed = { success: false, status_code: 0, response_body: null };
    const closed = await test(await newWebhook());
    expect(closed.body).toMatchObject({ ...failed, error: "connection closed early" });
    const refused = await test(await newWebhook({ url: "http://127.0.0.1:2/" }));
    expect(refused.body).toMatchObject({ ...failed, error: "connection refused" });
  });

  it("returns the first 2 KiB of the response", async () => {
    dispatcher.receiver.answer({
      kind: "answer",
      status: 400,
      body: `Unknown event${"!".repeat(4_096)}`,
    });
    const { body } = await test(await newWebhook());
    expect(body.error).toBeNull();
    expect(body.response_body).toBe(`Unknown event${"!".repeat(2_048 - 13)}`);
  });

  it("succeeds if the response body never ends", async () => {
    dispatcher.receiver.answer({ kind: "endless body" });
    const { body } = await test(await newWebhook());
    expect(body).toMatchObject({ success: true, status_code: 200 });
  });

  it("returns the response time of the target", async () => {
    dispatcher.receiver.answer({ kind: "answer", status: 200, delayMs: 120 });
    const { body } = await test(await newWebhook());
    expect(body.response_time_ms).toBeGreaterThanOrEqual(119);
  });

  it("creates no delivery, and works for a disabled webhook", async () => {
    const webhook = await newWebhook({ enabled: false });
    expect((await test(webhook)).body.success).toBe(true);
    const listed = await replica.call(`${webhook.path}/deliveries`, { key: tenant.serverKey });
    expect(listed.body.deliveries).toEqual([]);
  });

  it("sends nothing to a private target that is not allowed any more", async () => {
    const webhook = await newWebhook();
    const strict = await dispatcher.startReplica({
      rules: { httpsOnly: false, allowPrivate: false },
    });
    expect((await test(webhook, tenant.serverKey, strict)).body).toMatchObject({
      success: false,
      status_code: 0,
      error: "address not allowed",
    });
    expect(dispatcher.receiver.requests).toEqual([]);
    await strict.stop();
  });
});

describe("tests that hang", () => {
  it("are limited per organization, and do not count for other organizations", async () => {
    const mine = await dispatcher.newTenant(replica);
    const silent = await newWebhook({ url: `${dispatcher.receiver.url}/silent` }, mine);
    let answerNow = () => {};
    const answered = new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    dispatcher.receiver.answer({ kind: "answer", status: 200, after: answered }, "/silent");
    const held = Array.from({ length: testsPerOrganization }, () => test(silent, mine.serverKey));
    await eventually(() => dispatcher.receiver.requests.length === testsPerOrganization);
    const rejected = await test(silent, mine.serverKey);
    expect(rejected).toMatchObject({ status: 429, body: { error: { code: "RATE_001" } } });
    expect(rejected.body.error.message).toBe(
      "The limit of an organization is 4 concurrent webhook tests. Wait until one ends, or have the operator raise WEBHOOK_TESTS_PER_ORGANIZATION.",
    );
    expect(rejected.headers.get("retry-after")).toBe("1");
    expect((await test(await newWebhook())).body.success).toBe(true);
    answerNow();
    for (const { body } of await Promise.all(held)) expect(body.success).toBe(true);
    expect((await test(silent, mine.serverKey)).body.success).toBe(true);
  });

  it("are cancelled when the service stops, and answered with 503", async () => {
    dispatcher.receiver.answer({ kind: "hang" });
    const webhook = await newWebhook();
    const stopping = await dispatcher.startReplica();
    const held = test(webhook, tenant.serverKey, stopping);
    await eventually(() => dispatcher.receiver.hanging() === 1);
    await stopping.tests.stop();
    expect(await held).toMatchObject({ status: 503, body: { error: { code: "SERVER_002" } } });
    await stopping.stop();
  });
});

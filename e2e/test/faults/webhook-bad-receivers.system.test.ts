import { eventually, type Receiver, startReceiver } from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  beginWebhookStory,
  createWebhook,
  type WebhookStory,
} from "../../src/stories/webhook-story.ts";
import { type System, startSystem } from "../../src/system/system.ts";
import { must } from "../../src/system/tenancy.ts";
import type { CreatedFlag } from "../../src/traffic/changes.ts";

/** Two retries with short delays. A longer wait is requested by the target. */
const retryDelays = "50ms,100ms";
const attempts = 3;
const retryAfterSeconds = 1;

describe("given receivers that misbehave, and one that does not", () => {
  let system: System;
  let story: WebhookStory;
  let receiver: Receiver;

  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      dispatchers: 1,
      edges: 0,
      settings: () => ({ "webhook-dispatcher": { WEBHOOK_RETRY_DELAYS: retryDelays } }),
    });
    story = await beginWebhookStory(system, { name: "Well-behaved" });
  });
  // Each test has its own receiver, so that no connection of another test is reused.
  beforeEach(async () => {
    receiver = await startReceiver();
    system.endsWithSystem(receiver.close);
  });
  afterAll(() => system?.close());

  const hooks = () =>
    `${system.dispatchers[0]?.url}/api/v1/projects/${story.tenant.projectId}/webhooks`;
  const ask = (path: string, method = "GET", body?: object) =>
    must(`${hooks()}/${path}`, { method, key: story.tenant.serverKey, ...(body && { body }) });

  /** Creates a webhook for this path, and makes a change. Returns the id of the webhook. */
  async function deliverTo(path: string): Promise<string> {
    const id = await createWebhook(system.dispatchers[0]?.url ?? "", story.tenant, {
      name: path,
      url: `${receiver.url}${path}`,
      events: ["flag.toggled"],
    });
    await change();
    return id;
  }

  let isOn = false;
  async function change(): Promise<void> {
    isOn = !isOn;
    await story.switchByHand(story.flags[0] as CreatedFlag, isOn);
  }

  /** Waits until the webhook's first delivery has this status, and returns it. */
  const firstThatIs = (webhook: string, status: string) =>
    eventually(async () => {
      const first = (await ask(`${webhook}/deliveries`)).deliveries.at(-1);
      if (first?.status !== status) throw new Error(`the delivery is ${first?.status}`);
      return ask(`${webhook}/deliveries/${first.id}`);
    });

  const arrivedAt = (path: string) => receiver.requests.filter((request) => request.path === path);

  it.each([
    { path: "/500", answer: { kind: "answer", status: 500, body: "oh" }, code: 500, error: null },
    {
      path: "/elsewhere",
      answer: { kind: "answer", status: 307, headers: { location: "/200" } },
      code: 307,
      error: null,
    },
    {
      path: "/closes",
      answer: { kind: "close", when: "at once" },
      code: null,
      error: expect.any(String),
    },
  ] as const)("gives up on $path after its retries", async ({ path, answer, code, error }) => {
    receiver.answer(answer, path);
    const webhook = await deliverTo(path);
    const failed = await firstThatIs(webhook, "failed");
    expect(failed).toMatchObject({ attempts_made: attempts, next_attempt_at: null });
    expect(failed.attempts).toHaveLength(attempts);
    for (const attempt of failed.attempts)
      expect(attempt).toMatchObject({ status_code: code, error });
    expect(arrivedAt(path)).toHaveLength(attempts);
    expect(arrivedAt("/200")).toEqual([]);
    expect((await ask(webhook)).enabled).toBe(true);
    await ask(webhook, "PATCH", { enabled: false });
  });

  it("delivers to a receiver that has recovered", async () => {
    receiver.answer(() => {
      const status = arrivedAt("/recovers").length < attempts ? 503 : 200;
      return { kind: "answer", status };
    }, "/recovers");
    const delivered = await firstThatIs(await deliverTo("/recovers"), "delivered");
    const codes = delivered.attempts.map((attempt: { status_code: number }) => attempt.status_code);
    expect(codes).toEqual([503, 503, 200]);
  });

  it("treats a success with an endless body as delivered, and reads only a small part of it", async () => {
    receiver.answer({ kind: "endless body" }, "/endless");
    const delivered = await firstThatIs(await deliverTo("/endless"), "delivered");
    expect(delivered.attempts).toHaveLength(1);
    expect(Buffer.byteLength(delivered.attempts[0].response_body)).toBe(2_048);
    expect(arrivedAt("/endless")).toHaveLength(1);
  });

  it("disables a webhook whose target returns 410 in every attempt", async () => {
    receiver.answer({ kind: "answer", status: 410 }, "/gone");
    const webhook = await deliverTo("/gone");
    expect((await firstThatIs(webhook, "failed")).attempts).toHaveLength(attempts);
    expect((await ask(webhook)).enabled).toBe(false);
    expect(arrivedAt("/gone")).toHaveLength(attempts);
  });

  it("waits for the time that a target requests with 429", async () => {
    const headers = { "retry-after": String(retryAfterSeconds) };
    receiver.answer(
      () => ({
        kind: "answer",
        ...(arrivedAt("/busy").length === 1 ? { status: 429, headers } : { status: 200 }),
      }),
      "/busy",
    );
    await firstThatIs(await deliverTo("/busy"), "delivered");
    const [first, second, ...others] = arrivedAt("/busy");
    expect(others).toEqual([]);
    const waitedMs = Number(second?.receivedAt) - Number(first?.receivedAt);
    expect(waitedMs).toBeGreaterThanOrEqual(retryAfterSeconds * 1_000);
  });

  it("delays no other webhook because of one that hangs, and cancels its remaining deliveries", async () => {
    const release = Promise.withResolvers<void>();
    receiver.answer({ kind: "answer", status: 500, after: release.promise }, "/hangs");
    const webhook = await deliverTo("/hangs");
    await firstThatIs(webhook, "delivering");
    await eventually(() => arrivedAt("/hangs").length === 1);
    const before = story.receiver.requests.length;
    await change();
    await eventually(() => story.receiver.requests.length > before);
    expect((await firstThatIs(webhook, "delivering")).attempts).toEqual([]);
    await ask(webhook, "PATCH", { enabled: false });
    release.resolve();
    expect((await firstThatIs(webhook, "cancelled")).attempts).toHaveLength(1);
  });

  it("has delivered everything to the well-behaved receiver once", async () => {
    expect(await story.faults()).toEqual([]);
  });
});

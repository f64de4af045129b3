import { setTimeout as delay } from "node:timers/promises";
import {
  call,
  type EventStream,
  eventually,
  openEventStream,
  type Receiver,
  startReceiver,
} from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { createWebhook } from "../../src/stories/webhook-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge } from "../../src/system/system.ts";
import {
  createProject,
  createTenant,
  must,
  operatorToken,
  type Tenant,
} from "../../src/system/tenancy.ts";
import { type CreatedFlag, createFlags } from "../../src/traffic/changes.ts";
import { onThisMachine } from "../../src/traffic/promised-time.ts";

/** Time within which changes must be in effect, as documented. */
const promisedMs = 1_000;

export function describeStories({ system, gateway }: ClientSystem): void {
  const streams: EventStream[] = [];

  afterAll(() => {
    for (const stream of streams) stream.close();
  });

  const api = (path: string) => `${gateway.url}/api/v1/${path}`;
  /** Returns all addresses that an SDK may use. */
  const addresses = () => [gateway.url, ...system.edges.map((edge) => edge.url)];

  async function open(url: string, key: string): Promise<EventStream> {
    const stream = await openEventStream(`${url}/api/v1/sdk/stream`, bearer(key));
    streams.push(stream);
    return stream;
  }

  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

  async function valuesAt(url: string, key: string): Promise<Record<string, boolean> | number> {
    const { status, body } = await call(`${url}/api/v1/sdk/flags`, { key });
    return status === 200 ? body.flags : status;
  }

  const ordinaryRequest = () => fetch(`${system.edges[0]?.url}/healthz`);

  /** Waits until a condition holds, at most for the documented time. */
  async function soon(because: string, question: () => Promise<boolean>): Promise<void> {
    const withinMs = await onThisMachine(promisedMs, ordinaryRequest);
    await eventually(question, { withinMs, because });
  }

  const keysOf = (tenant: Tenant) =>
    `projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;

  async function issue(
    tenant: Tenant,
    settings: object = {},
  ): Promise<{ id: string; key: string }> {
    const body = { kind: "client", name: "issued", user_id: tenant.userId, ...settings };
    return must(api(keysOf(tenant)), { method: "POST", key: operatorToken, body });
  }

  const switchOn = (tenant: Tenant, flag: CreatedFlag | undefined, enabled = true) =>
    must(api(`flags/${flag?.id}`), { method: "PATCH", key: tenant.serverKey, body: { enabled } });

  describe("the operator deletes a project", () => {
    it("ends its keys, streams and flags within the documented time, and those of no other project", async () => {
      const tenant = await createTenant(gateway.url, { name: "Deleting" });
      const { organizationId, userId, projectId } = tenant;
      const other = await createProject(gateway.url, { organizationId, userId, name: "Other" });
      await createFlags(gateway.url, tenant.serverKey, ["checkout"]);
      const [kept] = await createFlags(gateway.url, other.serverKey, ["kept"]);
      const ending = await Promise.all(addresses().map((url) => open(url, tenant.clientKey)));
      const staying = await open(gateway.url, other.clientKey);
      for (const stream of [...ending, staying])
        await eventually(() => stream.events.some(({ event }) => event === "flags"));

      const path = `organizations/${organizationId}/projects/${projectId}?confirm=${projectId}`;
      await must(api(path), { method: "DELETE", key: operatorToken });
      for (const url of addresses())
        await soon(`${url} rejects the keys`, async () => {
          const keys = [tenant.clientKey, tenant.serverKey, tenant.otherServerKey];
          const answers = await Promise.all(keys.map((key) => valuesAt(url, key)));
          return answers.every((answer) => answer === 401);
        });
      await soon("its streams are closed", async () => {
        await Promise.all(ending.map((stream) => stream.ended));
        return true;
      });
      expect((await call(api("flags"), { key: tenant.serverKey })).status).toBe(401);
      const audit = await must(api(`projects/${projectId}/changes`), { key: operatorToken });
      expect(audit.changes[0]).toMatchObject({ action: "project_deleted" });

      const before = staying.events.length;
      await switchOn(other, kept);
      await eventually(() => staying.events.length > before);
      expect(staying.events.at(-1)?.data).toEqual({ flags: { kept: true } });
    });

    it("gets no deliveries any more, unlike another project", async () => {
      const tenant = await createTenant(gateway.url, { name: "Ending" });
      const { organizationId, userId, projectId } = tenant;
      const other = await createProject(gateway.url, { organizationId, userId, name: "Other" });
      const [ended, continued] = [await failDelivery(tenant), await failDelivery(other)];

      const path = `organizations/${organizationId}/projects/${projectId}?confirm=${projectId}`;
      await must(api(path), { method: "DELETE", key: operatorToken });
      const webhooks = api(`projects/${projectId}/webhooks`);
      await eventually(
        async () => (await call(webhooks, { key: tenant.serverKey })).status === 401,
      );
      await system.sql`update webhooks.deliveries set next_attempt_at = now() where status = 'retrying'`;
      await system.sql`update webhooks.lanes set due_at = now()`;
      await eventually(() => continued.requests.length > 1);
      await eventually(async () => {
        const [delivery] = await system.sql`
          select from webhooks.deliveries where project_id = ${projectId} and next_attempt_at > now()`;
        return delivery !== undefined;
      });
      expect(ended.requests).toHaveLength(1);
    });

    /** Makes the first attempt of a delivery fail. Returns its receiver. */
    async function failDelivery(tenant: Tenant): Promise<Receiver> {
      const [flag] = await createFlags(gateway.url, tenant.serverKey, ["checkout"]);
      const receiver = await startReceiver();
      system.endsWithSystem(receiver.close);
      receiver.answer({ kind: "answer", status: 503 });
      const { url } = receiver;
      await createWebhook(gateway.url, tenant, { name: "Hook", url, events: ["flag.toggled"] });
      await switchOn(tenant, flag);
      await eventually(async () => {
        const [delivery] = await system.sql`
          select from webhooks.deliveries
          where project_id = ${tenant.projectId} and status = 'retrying'`;
        return delivery !== undefined;
      });
      return receiver;
    }
  });

  describe("a flag that is switched over HTTP", () => {
    it("reaches every SDK, polling or streaming", async () => {
      const tenant = await createTenant(gateway.url, { name: "Flipping" });
      const [flag] = await createFlags(gateway.url, tenant.serverKey, ["checkout", "search"]);
      const opened = await Promise.all(
        addresses().flatMap((url) => [open(url, tenant.clientKey), open(url, tenant.serverKey)]),
      );
      for (const stream of opened)
        await eventually(() => stream.events.some(({ event }) => event === "flags"));
      const seen = opened.map((stream) => stream.events.length);

      await switchOn(tenant, flag);
      await Promise.all(
        addresses().map((url) =>
          soon(`${url} returns the new value`, async () => {
            const values = await valuesAt(url, tenant.clientKey);
            return typeof values === "object" && values.checkout === true;
          }),
        ),
      );
      for (const [index, stream] of opened.entries()) {
        const changes = await eventually(() => {
          const news = stream.events.slice(seen[index]).filter(({ event }) => event === "flags");
          return news.length > 0 && news;
        });
        expect(changes.map(({ data }) => data)).toEqual([{ flags: { checkout: true } }]);
      }
      expect(await valuesAt(gateway.url, tenant.clientKey)).toEqual({
        checkout: true,
        search: false,
      });
      const evaluated = await call(api("sdk/evaluate?key=checkout"), { key: tenant.clientKey });
      expect(evaluated.body).toEqual({
        key: "checkout",
        value: true,
        variation: "on",
        reason: "static",
      });
    });

    it("disappears from every response when it is deleted", async () => {
      const tenant = await createTenant(gateway.url, { name: "Deleting" });
      const [flag] = await createFlags(gateway.url, tenant.serverKey, ["checkout"]);
      const stream = await open(gateway.url, tenant.clientKey);
      await must(api(`flags/${flag?.id}`), { method: "DELETE", key: tenant.serverKey });
      await Promise.all(
        addresses().map((url) =>
          soon(`${url} no longer has it`, async () => {
            const values = await valuesAt(url, tenant.clientKey);
            return typeof values === "object" && !("checkout" in values);
          }),
        ),
      );
      const evaluated = await call(api("sdk/evaluate?key=checkout"), { key: tenant.clientKey });
      expect(evaluated.status).toBe(404);
      await eventually(() =>
        stream.events.some(
          ({ data }) => (data as { removed?: string[] }).removed?.[0] === "checkout",
        ),
      );
    });
  });

  describe("a resource that was just created", () => {
    it("works everywhere within a second", async () => {
      const tenant = await createTenant(gateway.url, { name: "Created" });
      const issued = await issue(tenant);
      await Promise.all(
        addresses().map((url) =>
          soon(
            `${url} has the key`,
            async () => typeof (await valuesAt(url, issued.key)) === "object",
          ),
        ),
      );
      const server = await issue(tenant, { kind: "server" });
      await Promise.all(
        system.managements.map(({ url }) =>
          soon(`${url} has the key`, async () => {
            return (await call(`${url}/api/v1/flags`, { key: server.key })).status === 200;
          }),
        ),
      );
      await createFlags(gateway.url, server.key, ["brand-new"]);
      await Promise.all(
        addresses().map((url) =>
          soon(`${url} has the flag`, async () => {
            const values = await valuesAt(url, issued.key);
            return typeof values === "object" && values["brand-new"] === false;
          }),
        ),
      );
    });
  });

  describe("a key that ends", () => {
    const rejectedEverywhere = (key: string) =>
      Promise.all(
        addresses().map((url) =>
          soon(`${url} rejects the key`, async () => (await valuesAt(url, key)) === 401),
        ),
      );

    async function openedEverywhere(key: string): Promise<EventStream[]> {
      await Promise.all(
        addresses().map((url) =>
          eventually(async () => typeof (await valuesAt(url, key)) === "object"),
        ),
      );
      return Promise.all(addresses().map((url) => open(url, key)));
    }

    async function closedWithin(opened: readonly EventStream[], ms: number): Promise<void> {
      const all = Promise.all(opened.map((stream) => stream.ended)).then(() => "all closed");
      const withinMs = await onThisMachine(ms, ordinaryRequest);
      expect(await Promise.race([all, delay(withinMs, "still open")])).toBe("all closed");
    }

    it("stops within a second when it is revoked, and its streams close", async () => {
      const tenant = await createTenant(gateway.url, { name: "Revoked" });
      const issued = await issue(tenant);
      const opened = await openedEverywhere(issued.key);
      await must(api(`${keysOf(tenant)}/${issued.id}`), { method: "DELETE", key: operatorToken });
      await Promise.all([rejectedEverywhere(issued.key), closedWithin(opened, promisedMs)]);
    });

    it("stops within a second when it is rotated, while the new key works", async () => {
      const tenant = await createTenant(gateway.url, { name: "Rotated" });
      const issued = await issue(tenant, { kind: "server" });
      const opened = await openedEverywhere(issued.key);
      const next = await must(api(`${keysOf(tenant)}/${issued.id}/rotate`), {
        method: "POST",
        key: operatorToken,
      });
      await Promise.all([rejectedEverywhere(issued.key), closedWithin(opened, promisedMs)]);
      for (const { url } of system.managements)
        await soon(`${url} rejects the key`, async () => {
          return (await call(`${url}/api/v1/flags`, { key: issued.key })).status === 401;
        });
      for (const url of addresses()) expect(await valuesAt(url, next.key)).toEqual({});
    });

    it("remains valid for the overlap when it is rotated with one", async () => {
      const tenant = await createTenant(gateway.url, { name: "Overlap" });
      const issued = await issue(tenant);
      const opened = await openedEverywhere(issued.key);
      const rotatedAt = performance.now();
      await must(api(`${keysOf(tenant)}/${issued.id}/rotate`), {
        method: "POST",
        key: operatorToken,
        body: { overlap_seconds: 4 },
      });
      for (const url of addresses()) expect(await valuesAt(url, issued.key)).toEqual({});
      await closedWithin(opened, 4_000 + promisedMs);
      expect(performance.now() - rotatedAt).toBeGreaterThan(3_900);
      await rejectedEverywhere(issued.key);
    });

    it("stops within a second of its expiry, even on an edge that is disconnected from NATS", async () => {
      const tenant = await createTenant(gateway.url, { name: "Expired" });
      // Long enough to open the streams, even on a busy machine.
      const lifetimeMs = 6_000;
      const expiresAt = new Date(Date.now() + lifetimeMs);
      const issued = await issue(tenant, { expires_at: expiresAt.toISOString() });
      const opened = await openedEverywhere(issued.key);
      system.nats.signal("SIGSTOP");
      try {
        await closedWithin(opened, expiresAt.getTime() - Date.now() + promisedMs);
        expect(Date.now()).toBeGreaterThanOrEqual(expiresAt.getTime());
        await rejectedEverywhere(issued.key);
      } finally {
        system.nats.signal("SIGCONT");
      }
    });
  });

  describe("an edge that is stopped", () => {
    it("closes its streams, so that they reconnect to another edge, and exits in order", async () => {
      const tenant = await createTenant(gateway.url, { name: "Draining" });
      const edge = system.edges[1] as Edge;
      await eventually(
        async () => typeof (await valuesAt(edge.url, tenant.clientKey)) === "object",
      );
      const stream = await open(edge.url, tenant.clientKey);
      expect(await edge.process.stop()).toBe(0);
      await stream.ended;
      await soon("the gateway uses the other edge", async () => {
        return typeof (await valuesAt(gateway.url, tenant.clientKey)) === "object";
      });
      await edge.start();
    });
  });
}

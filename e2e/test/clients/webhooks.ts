import { call, eventually, type Receiver, startReceiver } from "@halyard/testing";
import { beforeAll, expect, it } from "@jest/globals";
import { faultsOfSignatures } from "../../src/checks/webhook-agreement.ts";
import { createWebhook } from "../../src/stories/webhook-story.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** Webhooks from the change to the receiver. The tests of webhook-dispatcher check its routes and deliveries. */
const everything = [
  "flag.created",
  "flag.updated",
  "flag.deleted",
  "flag.toggled",
  "flag_state.updated",
];
const firstSecret = "the first secret";

export function describeWebhooks({ system, gateway }: ClientSystem): void {
  let receiver: Receiver;
  let tenant: Tenant;
  let webhook: string;

  beforeAll(async () => {
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
    await eventually(async () => {
      const { deliveries } = await ask(`${webhook}/deliveries`);
      const isDelivered = ({ status }: { status: string }) => status === "delivered";
      return deliveries.length === everything.length && deliveries.every(isDelivered);
    });

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
}

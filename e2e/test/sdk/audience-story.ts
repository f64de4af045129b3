import { type Client, createClient } from "@halyard/server-sdk";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";
import { onThisMachine } from "../../src/traffic/promised-time.ts";

type Given = { gatewayUrl: string };

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const members = 100_000;
const member = { id: "tester-4711" };
const outsider = { id: "tester-none" };

/** A list of beta users and a requirement, from the upload to the values of an application. */
export function describeAudienceStory(given: () => Given): void {
  let tenant: Tenant;
  let client: Client;
  let stream: EventStream;
  let paymentsId: string;

  const api = (method: string, path: string, body?: object) =>
    must(`${given().gatewayUrl}/api/v1${path}`, {
      ...{ method, key: tenant.serverKey },
      ...(body && { body }),
    });
  /** Returns the data of the newest event with values. Skips heartbeats. */
  const newestValues = () => stream.events.findLast(({ event }) => event === "flags")?.data;
  const isOn = (key: string, user: { id: string }) => client.isEnabled(key, user, false);
  const valuesAt = async (user: { id: string }) =>
    (
      await call(`${given().gatewayUrl}/api/v1/sdk/flags?user_id=${user.id}`, {
        key: tenant.clientKey,
      })
    ).body.flags;

  beforeAll(async () => {
    const { gatewayUrl } = given();
    tenant = await createTenant(gatewayUrl, { name: "Audiences" });
    client = createClient({ baseUrl: gatewayUrl, serverKey: tenant.serverKey, logger: silent });
    await client.ready();
    stream = await openEventStream(`${gatewayUrl}/api/v1/sdk/stream?user_id=${member.id}`, {
      authorization: `Bearer ${tenant.clientKey}`,
    });
  });
  afterAll(async () => {
    stream?.close();
    await client?.close();
  });

  it("uploads 100,000 users as CSV", async () => {
    await api("POST", "/audiences", { key: "beta", name: "Beta users" });
    const lines = Array.from({ length: members }, (_, index) => `tester-${index},2026-01-01\n`);
    const response = await fetch(
      `${given().gatewayUrl}/api/v1/audiences/beta/list?header=present`,
      {
        method: "PUT",
        headers: { authorization: `Bearer ${tenant.serverKey}`, "content-type": "text/csv" },
        body: `id,since\n${lines.join("")}`,
      },
    );
    expect([response.status, (await response.json()).list]).toEqual([
      200,
      { attribute: "id", count: members },
    ]);
  });

  it("gives the flag that requires another one to the members only", async () => {
    const payments = { key: "payments-v2", name: "Payments v2", enabled: true };
    paymentsId = (await api("POST", "/flags", payments)).id;
    await api("POST", "/flags", {
      ...{ key: "new-checkout", name: "New checkout", enabled: true },
      targeting_rules: [{ conditions: [{ audience: "beta" }] }],
      requires: [{ flag: "payments-v2", is: "on" }],
    });
    await eventually(() => isOn("new-checkout", member), { until: (on) => on });
    expect(isOn("new-checkout", outsider)).toBe(false);
    expect(await valuesAt(member)).toMatchObject({ "payments-v2": true, "new-checkout": true });
    expect(await valuesAt(outsider)).toMatchObject({ "payments-v2": true, "new-checkout": false });
  });

  it("takes a removed user out within a second", async () => {
    const withinMs = await onThisMachine(1_000, () => fetch(`${given().gatewayUrl}/healthz`));
    await api("PATCH", "/audiences/beta/list", { remove: [member.id] });
    await eventually(() => isOn("new-checkout", member), { until: (on) => !on, withinMs });
    await eventually(() => valuesAt(member), {
      until: (flags) => flags["new-checkout"] === false,
      withinMs,
    });
    await api("PATCH", "/audiences/beta/list", { add: [member.id] });
    await eventually(() => isOn("new-checkout", member), { until: (on) => on, withinMs });
  });

  it("turns both flags off in one event when the required one is turned off", async () => {
    await eventually(() => valuesAt(member), { until: (flags) => flags["new-checkout"] === true });
    await eventually(newestValues, {
      until: (data) => JSON.stringify(data) === '{"flags":{"new-checkout":true}}',
    });
    const changed = new Promise<readonly string[]>((resolve) => {
      client.on("change", ({ keys }) => resolve(keys));
    });
    await api("PATCH", `/flags/${paymentsId}`, { enabled: false });
    expect((await changed).toSorted()).toEqual(["new-checkout", "payments-v2"]);
    await eventually(newestValues, {
      until: (data) =>
        JSON.stringify(data) === '{"flags":{"new-checkout":false,"payments-v2":false}}',
    });
    expect(client.evaluate("new-checkout", member, false)).toMatchObject({
      ...{ value: false, reason: "prerequisite_failed" },
    });
  });
}

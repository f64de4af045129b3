import { call, eventually, openEventStream } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type System, startSystem } from "../src/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../src/tenancy.ts";

/** What people do with Halyard, through the gateway, on two managements and two edges. */
let system: System;
let gateway: string;
let tenant: Tenant;

beforeAll(async () => {
  system = await startSystem({ managements: 2, edges: 2 });
  gateway = (await system.startGateway()).url;
  tenant = await createTenant(gateway, { name: "Acme" });
});
afterAll(() => system.close());

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const createFlag = (key: string, enabled = false) =>
  must(`${gateway}/api/v1/flags`, {
    method: "POST",
    key: tenant.serverKey,
    body: { key, name: key, enabled },
  });
const valuesAt = async (edgeUrl: string, key: string) =>
  (await call(`${edgeUrl}/api/v1/sdk/flags`, { key })).body?.flags;

/** The contract's second in which everything must have arrived everywhere. */
const withinASecond = { withinMs: 1_000 };

describe("someone flips a flag", () => {
  it("and every SDK sees it, polling or streaming, on every edge", async () => {
    const flag = await createFlag("story-flip");
    const streams = await Promise.all(
      [gateway, ...system.edges.map((edge) => edge.url)].map((url) =>
        openEventStream(`${url}/api/v1/sdk/stream`, bearer(tenant.clientKey)),
      ),
    );
    await must(`${gateway}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      key: tenant.serverKey,
      body: { enabled: true },
    });
    for (const stream of streams) {
      const changed = await eventually(
        () => stream.events.find((event) => isChange(event.data, "story-flip")),
        withinASecond,
      );
      expect(changed).toMatchObject({ event: "flags", data: { flags: { "story-flip": true } } });
      stream.close();
    }
    for (const edge of system.edges)
      expect(await valuesAt(edge.url, tenant.clientKey)).toMatchObject({ "story-flip": true });
    const evaluated = await call(`${gateway}/api/v1/sdk/evaluate?key=story-flip`, {
      key: tenant.clientKey,
    });
    expect(evaluated.body).toEqual({
      key: "story-flip",
      value: true,
      variation: "on",
      reason: "static",
    });
  });

  it("and only the environment that it was meant for changes", async () => {
    const flag = await createFlag("story-staging");
    const state = `/api/v1/flags/${flag.id}/environments/${tenant.otherEnvironmentId}`;
    await must(gateway + state, {
      method: "PATCH",
      key: tenant.serverKey,
      body: { enabled: true },
    });
    const edge = system.edges[0]?.url ?? "";
    await eventually(
      async () => (await valuesAt(edge, tenant.otherServerKey))?.["story-staging"] === true,
      withinASecond,
    );
    expect(await valuesAt(edge, tenant.clientKey)).toMatchObject({ "story-staging": false });
  });
});

describe("someone deletes a flag", () => {
  it("and streams name it as removed, while evaluation no longer knows it", async () => {
    const flag = await createFlag("story-gone", true);
    const stream = await openEventStream(`${gateway}/api/v1/sdk/stream`, bearer(tenant.clientKey));
    await must(`${gateway}/api/v1/flags/${flag.id}`, { method: "DELETE", key: tenant.serverKey });
    await eventually(
      () => stream.events.some((event) => isRemoval(event.data, "story-gone")),
      withinASecond,
    );
    stream.close();
    const evaluated = await call(`${gateway}/api/v1/sdk/evaluate?key=story-gone`, {
      key: tenant.clientKey,
    });
    expect(evaluated.status).toBe(404);
  });
});

describe("someone ends a key", () => {
  const keysPath = () =>
    `${gateway}/api/v1/projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;
  const issue = (more: Record<string, unknown> = {}) =>
    must(keysPath(), {
      method: "POST",
      key: operatorToken,
      body: { kind: "server", name: "short-lived", user_id: tenant.userId, ...more },
    });

  async function expectToEnd(key: string, end: () => Promise<unknown>): Promise<void> {
    const places = [...system.edges, ...system.managements].map(({ url }) => url);
    const works = (url: string) =>
      call(url + (isEdge(url) ? "/api/v1/sdk/flags" : "/api/v1/flags"), { key });
    for (const url of places)
      await eventually(async () => (await works(url)).status === 200, withinASecond);
    const streams = await Promise.all(
      system.edges.map(({ url }) => openEventStream(`${url}/api/v1/sdk/stream`, bearer(key))),
    );
    await end();
    await Promise.all([
      ...places.map((url) =>
        eventually(async () => (await works(url)).status === 401, withinASecond),
      ),
      ...streams.map((stream) => stream.ended),
    ]);
  }
  const isEdge = (url: string) => system.edges.some((edge) => edge.url === url);

  it("by revoking it: it stops within a second everywhere, and its streams close", async () => {
    const { id, key } = await issue();
    await expectToEnd(key, () =>
      must(`${keysPath()}/${id}`, { method: "DELETE", key: operatorToken }),
    );
  });

  it("by rotating it: the new one works, the old one stops", async () => {
    const { id, key } = await issue();
    let next = "";
    await expectToEnd(key, async () => {
      const rotate = { method: "POST", key: operatorToken, body: {} };
      next = (await must(`${keysPath()}/${id}/rotate`, rotate)).key;
    });
    for (const edge of system.edges)
      expect(await valuesAt(edge.url, next)).toEqual(await valuesAt(edge.url, tenant.clientKey));
  });

  it("by letting it expire", async () => {
    const lifetimeMs = 1_500;
    const expiresAt = Date.now() + lifetimeMs;
    const { key } = await issue({ expires_at: new Date(expiresAt).toISOString() });
    await expectToEnd(key, () => eventually(() => Date.now() >= expiresAt));
  });
});

describe("someone starts with nothing", () => {
  it("and what was just created works everywhere within a second", async () => {
    const newcomer = await createTenant(gateway, { name: "Newcomer" });
    await must(`${gateway}/api/v1/flags`, {
      method: "POST",
      key: newcomer.serverKey,
      body: { key: "first", name: "First", enabled: true },
    });
    for (const edge of system.edges)
      await eventually(
        async () => (await valuesAt(edge.url, newcomer.clientKey))?.first === true,
        withinASecond,
      );
  });
});

function isChange(data: unknown, key: string): boolean {
  return (data as { flags?: Record<string, boolean> }).flags?.[key] === true;
}

function isRemoval(data: unknown, key: string): boolean {
  return (data as { removed?: string[] }).removed?.includes(key) === true;
}

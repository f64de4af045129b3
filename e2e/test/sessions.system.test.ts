import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { publicUrl, signIn } from "../src/system/sign-in.ts";
import { type System, startSystem } from "../src/system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../src/system/tenancy.ts";

/** Tests that every service accepts a session, and stops accepting it within the documented time. */

/** The time after which an ended session or a withdrawn role no longer counts anywhere. */
const withinMs = 1_000;

describe("given a person with a role in the project", () => {
  let system: System;
  let tenant: Tenant;
  let managementUrl: string;
  let userCount = 0;

  beforeAll(async () => {
    const settings = { PUBLIC_URL: publicUrl };
    system = await startSystem({
      ...{ managements: 2, schedulers: 1, dispatchers: 1, meterings: 1, edges: 1 },
      settings: () => ({
        ...{ management: settings, scheduler: settings },
        ...{ "webhook-dispatcher": settings, "usage-metering": settings },
      }),
    });
    managementUrl = system.managements[0]?.url ?? "";
    tenant = await createTenant(managementUrl, { name: "Acme" });
  }, 120_000);
  afterAll(() => system?.close());

  const signInAsEditor = () =>
    signIn(managementUrl, tenant, {
      email: `person-${++userCount}@example.com`,
      role: "editor",
    });

  /** Returns the status of a request to each process of the services that accept sessions. */
  async function statuses(headers: Record<string, string>): Promise<number[]> {
    const urls = [
      ...system.managements.map(({ url }) => `${url}/api/v1/flags`),
      ...system.schedulers.map(({ url }) => `${url}/api/v1/schedules`),
      ...system.dispatchers.map(({ url }) => `${url}/api/v1/projects/${tenant.projectId}/webhooks`),
      ...system.meterings.map(({ url }) => `${url}/api/v1/usage`),
    ];
    const answers = await Promise.all(urls.map((url) => call(url, { headers })));
    return answers.map(({ status }) => status);
  }

  const areAll = (expected: number) => (found: readonly number[]) =>
    found.every((status) => status === expected);
  const become = (status: number, headers: Record<string, string>, bound = {}) =>
    eventually(() => statuses(headers), { ...bound, until: areAll(status) });

  /** Opens the stream of changes at the other management. Returns whether it is open. */
  async function openStream(headers: Record<string, string>): Promise<() => boolean> {
    const { url = "" } = system.managements[1] ?? {};
    const path = `/api/v1/projects/${tenant.projectId}/changes/stream`;
    const { status, body } = await fetch(url + path, { headers });
    expect(status).toBe(200);
    let isOpen = true;
    void body?.pipeTo(new WritableStream()).finally(() => {
      isOpen = false;
    });
    return () => isOpen;
  }

  it("ends the session on every service within a second, with an open stream", async () => {
    const { headers } = await signInAsEditor();
    await become(200, headers);
    const isOpen = await openStream(headers);
    expect(isOpen()).toBe(true);
    const signedOut = await call(`${managementUrl}/auth/sign-out`, { method: "POST", headers });
    expect(signedOut.status).toBe(200);
    await Promise.all([
      become(401, headers, { withinMs }),
      eventually(() => !isOpen(), { withinMs, because: "the stream ends" }),
    ]);
  });

  it("withdraws the role on every service within a second, with an open stream", async () => {
    const { headers, grantId } = await signInAsEditor();
    await become(200, headers);
    const isOpen = await openStream(headers);
    expect(isOpen()).toBe(true);
    const path = `/api/v1/organizations/${tenant.organizationId}/grants/${grantId}`;
    await must(managementUrl + path, { method: "DELETE", key: operatorToken });
    await Promise.all([
      become(404, headers, { withinMs }),
      eventually(() => !isOpen(), { withinMs, because: "the stream ends" }),
    ]);
  });
});
